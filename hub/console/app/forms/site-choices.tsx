import { NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../api/client.ts";
import { question } from "../api/query-client.ts";
import { useSites } from "../api/sites.ts";

const MOST = 200;

interface SelectProps {
  readonly value: string;
  readonly error?: string | undefined;
  readonly onChange: (event: { currentTarget: { value: string } }) => void;
  readonly name?: string;
  readonly label?: string;
  readonly description?: ReactNode;
  /** The text that the selection field shows while no site is chosen. */
  readonly none?: string;
}

const optionsOf = (none: string, values: readonly { readonly value: string; readonly label: string }[]) => [
  { value: "", label: none },
  ...values,
];

export function SiteSelect({ label = "Site", none = "Choose a site", ...rest }: SelectProps): ReactNode {
  const sites = [...useSites().values()].filter(({ status }) => status === "active");
  return (
    <NativeSelect
      label={label}
      data={optionsOf(
        none,
        sites.map(({ id, name }) => ({ value: id, label: name })),
      )}
      {...rest}
    />
  );
}

export const skus = question(["skus"], ["skus"], (signal) =>
  read(api.GET("/api/v1/admin/skus", { params: { query: { limit: MOST } }, signal })),
);

export function SkuSelect({ label = "SKU", none = "Choose a SKU", ...rest }: SelectProps): ReactNode {
  const { data } = useQuery(skus);
  const active = (data?.items ?? []).filter(({ status }) => status === "active");
  return (
    <NativeSelect
      label={label}
      data={optionsOf(
        none,
        active.map(({ id, description }) => ({ value: id, label: description === "" ? id : `${id} (${description})` })),
      )}
      {...rest}
    />
  );
}
export const profilesOf = (siteId: string) =>
  question(["sites", `maas-sites/${siteId}`], ["profiles", siteId], (signal) =>
    read(
      api.GET("/api/v1/admin/maas-sites/{id}/profiles", {
        params: { path: { id: siteId }, query: { limit: MOST } },
        signal,
      }),
    ),
  );

export function ProfileSelect({
  siteId,
  label = "Profile",
  none = "Choose a profile",
  ...rest
}: SelectProps & { readonly siteId: string }): ReactNode {
  const { data } = useQuery({ ...profilesOf(siteId), enabled: siteId !== "" });
  const active = (data?.items ?? []).filter(({ status }) => status === "active");
  return (
    <NativeSelect
      label={label}
      disabled={siteId === ""}
      data={optionsOf(
        siteId === "" ? "Choose the site first" : none,
        active.map(({ id, name, description }) => ({
          value: id,
          label: description === null ? name : `${name} (${description})`,
        })),
      )}
      {...rest}
    />
  );
}

import { SegmentedControl, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import { CsvField } from "../../forms/csv-field.tsx";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { ProfileSelect, SiteSelect, SkuSelect } from "../../forms/site-choices.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { BatchLink, OperationLink } from "../../parts/links.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { counted } from "../../parts/tones.ts";
import { batchBody, byLine, checkOnboarding, type OnboardValues, oneBody, readHosts } from "./onboard-form.ts";
import { onboardRoute } from "./route.ts";

const EXAMPLE = `hostname,ipmi_ip,pxe_mac,room,rack,unit
c07u41,10.20.7.41,,hall-1,c07,41
c07u42,10.20.7.42,,hall-1,c07,42`;

const EMPTY: Omit<OnboardValues, "many" | "site_id"> = {
  profile_id: "",
  sku_id: "",
  hostname: "",
  ipmi_ip: "",
  pxe_mac: "",
  room: "",
  rack: "",
  unit: "",
  hosts: "",
  stop_after_failures: "",
};

/** The result of an onboarding request: the operation of one host, or the number of hosts of a batch. */
type Taken = { readonly id: string; readonly hostname: string } | { readonly count: number; readonly batch: string };

async function onboard(values: OnboardValues, header: { "Idempotency-Key": string }): Promise<Taken> {
  if (values.many) {
    const asked = api.POST("/api/v1/admin/onboardings/batch", { params: { header }, body: batchBody(values) });
    const { onboardings, batch_id: batch } = await read(asked).catch((error: unknown) => {
      throw error instanceof HubError ? byLine(error, readHosts(values.hosts)) : error;
    });
    return { count: onboardings.length, batch };
  }
  const body = oneBody(values);
  const { onboarding_id: id } = await read(api.POST("/api/v1/admin/onboardings", { params: { header }, body }));
  return { id, hostname: body.hostname };
}

const say = (taken: Taken): ReactNode =>
  "count" in taken ? (
    <>
      The hub onboards {counted(taken.count, "host")}:{" "}
      <BatchLink kind="onboarding" id={taken.batch}>
        their batch
      </BatchLink>
    </>
  ) : (
    <>
      The hub onboards {taken.hostname}: <OperationLink kind="onboarding" id={taken.id} />
    </>
  );

/** Brings hosts into service. */
export function Page(): ReactNode {
  const search = onboardRoute.useSearch();
  const navigate = useNavigate();
  const form = useForm<OnboardValues, Taken>({
    initial: { ...EMPTY, many: search.many === "true", site_id: search.site_id ?? "" },
    check: checkOnboarding,
    send: onboard,
    changes: ["nodes", "operations", "batches"],
    onTaken: (taken) => {
      notify({ tone: "good", text: say(taken) });
      void navigate({ to: "/nodes" });
    },
    what: "the onboarding",
  });
  return (
    <>
      <PageHead
        title="Onboard hosts"
        below="MAAS finds, tests and deploys each host, and Muster's agent on the host makes the node active."
      />
      <FormOf form={form} label="Onboard hosts" send={form.values.many ? "Onboard all hosts" : "Onboard the host"}>
        <Where form={form} />
        <SegmentedControl
          mb="md"
          aria-label="How many hosts"
          value={form.values.many ? "many" : "one"}
          onChange={(many) => form.set({ many: many === "many" })}
          data={[
            { value: "one", label: "One host" },
            { value: "many", label: "Many hosts from a table" },
          ]}
        />
        {form.values.many ? <ManyHosts form={form} /> : <OneHost form={form} />}
      </FormOf>
    </>
  );
}

type Part = { readonly form: Form<OnboardValues> };

function Where({ form }: Part): ReactNode {
  const site = form.text("site_id");
  return (
    <FieldGroup
      title="Where and how"
      about="The profile says what is installed, which checks run and how long each stage may take."
    >
      <SiteSelect {...site} onChange={(event) => form.set({ site_id: event.currentTarget.value, profile_id: "" })} />
      <ProfileSelect siteId={form.values.site_id} {...form.text("profile_id")} />
      <SkuSelect description="What kind of host it is. Hosts with other GPUs fail a check." {...form.text("sku_id")} />
    </FieldGroup>
  );
}

const typed = { spellCheck: false, autoComplete: "off" } as const;

const OneHost = ({ form }: Part): ReactNode => (
  <FieldGroup title="The host">
    <TextInput label="Hostname" description="Without a domain." {...typed} {...form.text("hostname")} />
    <TextInput label="Address of the BMC" description="IPv4 or IPv6." {...typed} {...form.text("ipmi_ip")} />
    <TextInput
      label="MAC address for PXE"
      description="Only if MAAS cannot find the host by its BMC."
      {...typed}
      {...form.text("pxe_mac")}
    />
    <TextInput label="Room" description="Optional." {...typed} {...form.text("room")} />
    <TextInput label="Rack" description="Optional." {...typed} {...form.text("rack")} />
    <TextInput label="Unit" description="Optional, 1 to 100." inputMode="numeric" {...typed} {...form.text("unit")} />
  </FieldGroup>
);

const ManyHosts = ({ form }: Part): ReactNode => (
  <FieldGroup title="The hosts">
    <Wide>
      <CsvField
        label="Table of hosts as CSV"
        description="The first line names the columns: hostname and ipmi_ip, and optionally pxe_mac, room, rack and unit. Commas, semicolons and tabs all work."
        example={EXAMPLE}
        text={form.values.hosts}
        table={readHosts(form.values.hosts)}
        of="host"
        error={form.errors.hosts}
        onChange={(hosts) => form.set({ hosts })}
      />
    </Wide>
    <TextInput
      label="Stop after failures"
      description="After so many failed hosts no further host begins until somebody resumes the batch. Empty: never."
      inputMode="numeric"
      {...typed}
      {...form.text("stop_after_failures")}
    />
  </FieldGroup>
);

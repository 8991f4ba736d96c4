import { NativeSelect, NumberInput, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, ifUnchanged, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { skus } from "../../forms/site-choices.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { NodesLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";

type Row = Answer<"listSkus">["items"][number];
type Vendor = Row["gpu_vendor"];

const COLUMNS: readonly Column<Row>[] = [
  { id: "id", head: "SKU", cell: ({ id }) => <NodesLink search={{ sku_id: [id] }}>{id}</NodesLink> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "vendor", head: "GPUs of", cell: ({ gpu_vendor: vendor }) => (vendor === "none" ? "-" : vendor) },
  { id: "model", head: "Model", wide: true, cell: ({ gpu_model: model }) => model || "-" },
  { id: "gpus", head: "GPUs", align: "end", cell: ({ gpus_total: gpus }) => gpus },
  { id: "about", head: "Description", wide: true, cell: ({ description }) => description || "-" },
  { id: "switch", head: "Verb", align: "end", cell: (one) => <Switch one={one} /> },
];

const Switch = ({ one }: { readonly one: Row }): ReactNode => (
  <VerbButton
    verb={one.status === "active" ? "Disable" : "Enable"}
    what={`the SKU ${one.id}`}
    effect={
      one.status === "active"
        ? "No new host can have the SKU. Nodes with the SKU stay as they are."
        : "New hosts can have the SKU again."
    }
    asksReason={false}
    right="manage_hub"
    changes={["skus"]}
    run={async () => {
      const path = { id: one.id };
      const header = ifUnchanged(await api.GET("/api/v1/admin/skus/{id}", { params: { path } }));
      const body = { status: one.status === "active" ? ("disabled" as const) : ("active" as const) };
      return read(api.PATCH("/api/v1/admin/skus/{id}", { params: { path, header }, body }));
    }}
  />
);

/** Lists the SKUs, which are the kinds of hosts that the hub knows. */
export function Page(): ReactNode {
  const query = useQuery(skus);
  return (
    <>
      <PageHead
        title="SKUs"
        below="A SKU is a kind of host. An onboarding checks that a host has the GPUs of its SKU."
        actions={<NewSku />}
      />
      <Answered query={query} what="the SKUs">
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="The hub knows no SKU yet" kind="none">
              An onboarding needs a SKU, so make one for each kind of host.
            </Empty>
          ) : (
            <Section title="All SKUs">
              <DataTable label="The SKUs" columns={COLUMNS} rows={items} rowKey={({ id }) => id} />
            </Section>
          )
        }
      </Answered>
    </>
  );
}

const NO_SKU = {
  id: "",
  about: "",
  vendor: "nvidia" as Vendor,
  gpus: 8 as number | string,
  memory: "" as number | string,
};

const NewSku = (): ReactNode => (
  <VerbButton
    verb="New SKU"
    what="for a kind of host"
    effect="Nodes, onboardings and allocations name the SKU by its id, which cannot change."
    asksReason={false}
    right="manage_hub"
    changes={["skus"]}
    run={({ headers, values: { id, about, vendor, gpus, memory } }) =>
      read(
        api.POST("/api/v1/admin/skus", {
          params: { header: headers },
          body: {
            id: id.trim(),
            description: about.trim(),
            gpu_vendor: vendor,
            gpu_model: "",
            gpus_total: vendor === "none" ? 0 : Number(gpus),
            hardware: memory === "" ? {} : { memory_gib: Number(memory) },
          },
        }),
      )
    }
    initial={NO_SKU}
    fields={Fields}
  />
);

const Fields = ({ values, set }: Typed<typeof NO_SKU>): ReactNode => (
  <>
    <TextInput
      label="Id"
      description="Small letters, digits, dots, hyphens and underscores, for example h100.80g.8gpu."
      mb="xs"
      required
      withAsterisk={false}
      pattern="[a-z0-9][a-z0-9._\-]*"
      data-autofocus
      value={values.id}
      onChange={(event) => set({ id: event.currentTarget.value })}
    />
    <TextInput
      label="Description"
      mb="xs"
      value={values.about}
      onChange={(event) => set({ about: event.currentTarget.value })}
    />
    <NativeSelect
      label="Vendor of the GPUs"
      mb="xs"
      data={["nvidia", "amd", "none"]}
      value={values.vendor}
      onChange={(event) => set({ vendor: event.currentTarget.value as Vendor })}
    />
    <MemoryInput value={values.memory} onChange={(memory) => set({ memory })} />
    {values.vendor === "none" ? null : (
      <NumberInput
        label="GPUs of a host"
        min={1}
        max={64}
        clampBehavior="strict"
        allowDecimal={false}
        value={values.gpus}
        onChange={(gpus) => set({ gpus })}
      />
    )}
  </>
);

function MemoryInput(field: {
  readonly value: number | string;
  readonly onChange: (value: number | string) => void;
}): ReactNode {
  return (
    <NumberInput
      label="Memory of a host in GiB"
      description="A host with less takes no tenant. Empty: the hub does not check it. The command line also takes disks and NICs."
      mb="xs"
      min={1}
      allowDecimal={false}
      {...field}
    />
  );
}

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, onceOnly, read } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import type { Answer } from "../../api/schema.ts";
import { CsvField } from "../../forms/csv-field.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Note } from "../../parts/note.tsx";
import { Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { counted } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { keptRows, type RefusedRow, readRoce, roceBody } from "./roce-rows.ts";
import { roceOf, type Site } from "./site-questions.ts";

type Row = Answer<"listRoceAssignments">["items"][number];

const columnsOf = (site: Site): readonly Column<Row>[] => [
  { id: "host", head: "Host", cell: ({ hostname }) => hostname },
  { id: "interface", head: "Interface", cell: ({ interface: name }) => <code>{name}</code> },
  { id: "address", head: "Address", cell: ({ ipv4_cidr: address }) => <code>{address}</code> },
  { id: "changed", head: "Changed", wide: true, cell: ({ updated_at: at }) => <RelativeTime at={at} /> },
  {
    id: "remove",
    head: "Verb",
    align: "end",
    cell: (row) => (
      <VerbButton
        verb="Remove"
        what={`the RoCE row ${row.hostname} ${row.interface}`}
        effect="The next onboarding of the host does not set the address of the interface."
        final
        asksReason={false}
        right="configure_sites"
        changes={["sites", `maas-sites/${site.id}`]}
        run={() =>
          read(
            api.DELETE("/api/v1/admin/maas-sites/{id}/roce-assignments/{assignment_id}", {
              params: { path: { id: site.id, assignment_id: row.id } },
            }),
          )
        }
      />
    ),
  },
];

/** The addresses of the hosts' RoCE interfaces. */
export function Roce({ site }: { readonly site: Site }): ReactNode {
  const query = useQuery(roceOf(site.id));
  return (
    <Section title="RoCE rows" aside={<AddRows site={site} />}>
      <Answered query={query} what="the RoCE rows">
        {({ items, next_cursor: more }) =>
          items.length === 0 ? (
            <Empty title="The site has no RoCE rows" kind="none">
              A row gives an interface of a host its address. Hosts without RoCE need none.
            </Empty>
          ) : (
            <>
              <DataTable label="The RoCE rows" columns={columnsOf(site)} rows={items} rowKey={({ id }) => id} />
              {more === null ? null : <p className={parts.prose}>The first {items.length} rows are shown.</p>}
            </>
          )
        }
      </Answered>
    </Section>
  );
}

function AddRows({ site }: { readonly site: Site }): ReactNode {
  const [text, setText] = useState("");
  const [refused, setRefused] = useState<readonly RefusedRow[]>([]);
  // A repeat of the same text is the same request, for example after a lost answer. A changed text is another one.
  const [header, setHeader] = useState(onceOnly);
  const table = readRoce(text);
  const write = (next: string): void => {
    setText(next);
    setRefused([]);
    setHeader(onceOnly());
  };
  return (
    <VerbButton
      verb="Import rows"
      what={`of RoCE at ${site.name}`}
      effect="A row for an interface that has one already replaces it. Other rows stay."
      asksReason={false}
      right="configure_sites"
      changes={["sites", `maas-sites/${site.id}`]}
      run={async () => {
        refuseFaults(table.rows.length, table.faults.length);
        const body = roceBody(table);
        const answer = await read(
          api.POST("/api/v1/admin/maas-sites/{id}/roce-assignments", {
            params: { path: { id: site.id }, header },
            body,
          }),
        );
        if (answer.failed === 0) return write("");
        const kept = keptRows(table, answer);
        write(kept.text);
        setRefused(kept.refused);
        throw partly(answer.failed, answer.written);
      }}
    >
      <CsvField
        label="RoCE rows as CSV"
        description="The first line names the columns: hostname, interface and ipv4_cidr."
        example={"hostname,interface,ipv4_cidr\nc07u41,enp28s0np0,172.30.0.1/31"}
        text={text}
        table={table}
        of="row"
        onChange={write}
      />
      {refused.length === 0 ? null : (
        <Note tone="bad" title="The hub refused these rows; all others are written">
          <ul>
            {refused.map(({ line, message }) => (
              <li key={`${line} ${message}`}>
                line {line}: {message}
              </li>
            ))}
          </ul>
        </Note>
      )}
    </VerbButton>
  );
}

/** The dialog sends nothing while the table has faults. */
function refuseFaults(rows: number, faults: number): void {
  if (rows > 0 && faults === 0) return;
  const detail =
    faults > 0 ? `The table has ${counted(faults, "fault")}. Nothing was sent.` : "The table has no row yet.";
  throw new HubError({ status: 422, code: "table_faults", title: "The table has faults", detail });
}

/** The dialog stays open with the refused rows, because the hub has not written all rows. */
const partly = (failed: number, written: number): HubError =>
  new HubError({
    status: 200,
    code: "rows_refused",
    title: "The hub refused rows",
    detail: `The hub refused ${counted(failed, "row")} and took ${counted(written, "row")}. Only the refused rows are left in the text. Correct them, and import again.`,
  });

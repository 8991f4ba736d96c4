import { type ReactNode, useRef } from "react";
import { api, onceOnly, read } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import type { Answer } from "../../api/schema.ts";
import { CsvField } from "../../forms/csv-field.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { Note } from "../../parts/note.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { counted } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { keptRows, type RefusedRow, readRoce, roceBody } from "./roce-rows.ts";
import type { Site } from "./site-questions.ts";

const PAGE = 100;
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
  const columns = columnsOf(site);
  return (
    <Section title="RoCE rows" aside={<AddRows site={site} />}>
      <LongList<Row>
        what="RoCE rows"
        about={["sites", `maas-sites/${site.id}`]}
        listKey={["site", site.id, "roce"]}
        ask={(cursor, signal) =>
          read(
            api.GET("/api/v1/admin/maas-sites/{id}/roce-assignments", {
              params: { path: { id: site.id }, query: { limit: PAGE, cursor } },
              signal,
            }),
          )
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty title="The site has no RoCE rows" kind="none">
            A row gives an interface of a host its address. Hosts without RoCE need none.
          </Empty>
        }
      />
    </Section>
  );
}

interface Rows {
  readonly text: string;
  readonly refused: readonly RefusedRow[];
  /** Sending the same table text again, for example after a lost answer, counts as the same request. A changed text is another one. */
  readonly header: ReturnType<typeof onceOnly>;
}
const rowsOf = (text: string, refused: readonly RefusedRow[] = []): Rows => ({ text, refused, header: onceOnly() });

function AddRows({ site }: { readonly site: Site }): ReactNode {
  // A person who closes and reopens the dialog finds the typed table again.
  const last = useRef(rowsOf(""));
  const write = (rows: Rows): Rows => {
    last.current = rows;
    return rows;
  };
  return (
    <VerbButton
      verb="Import rows"
      what={`of RoCE at ${site.name}`}
      effect="A row for an interface that has one already replaces it. Other rows stay."
      asksReason={false}
      right="configure_sites"
      changes={["sites", `maas-sites/${site.id}`]}
      run={async ({ values: { text, header }, set }) => {
        const table = readRoce(text);
        refuseFaults(table.rows.length, table.faults.length);
        const answer = await read(
          api.POST("/api/v1/admin/maas-sites/{id}/roce-assignments", {
            params: { path: { id: site.id }, header },
            body: roceBody(table),
          }),
        );
        const kept = answer.failed === 0 ? null : keptRows(table, answer);
        set(write(rowsOf(kept?.text ?? "", kept?.refused)));
        if (kept !== null) throw partly(answer.failed, answer.written);
      }}
      initial={last.current}
      fields={({ values, set }) => <RowFields rows={values} onChange={(text) => set(write(rowsOf(text)))} />}
    />
  );
}

function RowFields({ rows, onChange }: { readonly rows: Rows; readonly onChange: (text: string) => void }): ReactNode {
  return (
    <>
      <CsvField
        label="RoCE rows as CSV"
        description="The first line names the columns: hostname, interface and ipv4_cidr."
        example={"hostname,interface,ipv4_cidr\nc07u41,enp28s0np0,172.30.0.1/31"}
        text={rows.text}
        table={readRoce(rows.text)}
        of="row"
        onChange={onChange}
      />
      {rows.refused.length === 0 ? null : (
        <Note tone="bad" title="The hub refused these rows; all others are written">
          <ul>
            {rows.refused.map(({ line, message }) => (
              <li key={`${line} ${message}`}>
                line {line}: {message}
              </li>
            ))}
          </ul>
        </Note>
      )}
    </>
  );
}

/** The dialog sends no request while the table has errors. */
function refuseFaults(rows: number, faults: number): void {
  if (rows > 0 && faults === 0) return;
  const detail =
    faults > 0 ? `The table has ${counted(faults, "fault")}. Nothing was sent.` : "The table has no row yet.";
  throw new HubError({ status: 422, code: "table_faults", title: "The table has faults", detail });
}

/** The error that keeps the dialog open with the refused rows, because the hub has written only a part of the table. */
const partly = (failed: number, written: number): HubError =>
  new HubError({
    status: 200,
    code: "rows_refused",
    title: "The hub refused rows",
    detail: `The hub refused ${counted(failed, "row")} and took ${counted(written, "row")}. Only the refused rows are left in the text. Correct them, and import again.`,
  });

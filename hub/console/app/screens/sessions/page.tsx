import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Column } from "../../parts/data-table.tsx";
import { TokenLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Row = Answer<"listSessions">["items"][number];
const PAGE = 100;

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", head: "Person", cell: ({ name }) => name },
  {
    id: "way",
    head: "Signed in by",
    cell: ({ token_id: id, subject }) =>
      id === null ? `the provider, as ${subject}` : <TokenLink id={id}>a token</TokenLink>,
  },
  { id: "address", head: "From", wide: true, cell: ({ address }) => <code>{address}</code> },
  { id: "browser", head: "Browser", wide: true, cell: ({ user_agent: agent }) => <span title={agent}>{agent}</span> },
  { id: "begun", head: "Began", wide: true, cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  { id: "used", head: "Last used", cell: ({ last_used_at: at }) => <RelativeTime at={at} /> },
  { id: "expires", head: "Ends", wide: true, cell: ({ expires_at: at }) => <RelativeTime at={at} /> },
  { id: "end", head: "Verb", cell: (one) => <End one={one} /> },
];

const End = ({ one }: { readonly one: Row }): ReactNode => (
  <VerbButton
    verb="End"
    what={`the session of ${one.name} from ${one.address}`}
    effect="The person has to sign in again. To keep a person out, revoke the token or take the role at the provider."
    final
    asksReason={false}
    right="manage_people"
    changes={["sessions"]}
    run={({ headers }) =>
      read(api.POST("/api/v1/admin/sessions/{id}/end", { params: { path: { id: one.id }, header: headers } }))
    }
  />
);

/** Who is signed in in a browser. */
export const Page = (): ReactNode => (
  <>
    <PageHead title="Sessions" below="Who is signed in in a browser. All tabs of a browser share one session." />
    <LongList<Row>
      what="sessions"
      about={["sessions", "tokens"]}
      listKey={["sessions", "list"]}
      ask={(cursor, signal) =>
        read(api.GET("/api/v1/admin/sessions", { params: { query: { limit: PAGE, cursor } }, signal }))
      }
      columns={COLUMNS}
      rowKey={({ id }) => id}
      empty={
        <Empty title="Nobody is signed in in a browser" kind="none">
          You use the hub by a token without a session.
        </Empty>
      }
    />
  </>
);

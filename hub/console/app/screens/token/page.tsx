import { NumberInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import { Facts } from "../../parts/facts.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { ShownOnce } from "../../parts/shown-once.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { tokenRoute } from "./route.ts";

type Token = Answer<"getToken">;

/** The name of the hub's first token, which can be rotated only through its file on the hub and not by the API. */
const FIRST_TOKEN = "admin";
const DAYS = 90;
const MOST_DAYS = 366;

const tokenOf = (id: string) =>
  question([`tokens/${id}`, "tokens"], ["token", id], (signal) =>
    read(api.GET("/api/v1/admin/tokens/{id}", { params: { path: { id } }, signal })),
  );

/** Shows one API token: what it may do, and the verbs that rotate its secret or revoke it. */
export function Page(): ReactNode {
  const { id } = tokenRoute.useParams();
  const query = useQuery(tokenOf(id));
  return (
    <Answered query={query} what="the token">
      {(one) => <Body key={id} one={one} />}
    </Answered>
  );
}

function Body({ one }: { readonly one: Token }): ReactNode {
  const [secret, setSecret] = useState<string | null>(null);
  const siteName = useSiteName();
  return (
    <>
      <PageHead
        title={one.name}
        beside={<StatusBadge status={one.status} />}
        below={`token of the role ${one.role}`}
        actions={
          <>
            <Rotate one={one} onSecret={setSecret} />
            <Revoke one={one} />
          </>
        }
      />
      {secret === null ? null : (
        <ShownOnce title="Copy the new token now: it is shown once" secret={secret}>
          The old token stays valid for an hour, so that programs can take the new one.
        </ShownOnce>
      )}
      <Section title="The token">
        <Facts
          facts={[
            ["Role", one.role],
            ["Sites", one.site_ids === null ? "the whole hub" : one.site_ids.map(siteName).join(", ")],
            ["Tenant", one.tenant ?? undefined],
            ["Ends with", <code key="end">{one.last_four ?? "-"}</code>],
            ["Expires", <RelativeTime key="expires" at={one.expires_at} />],
            ["Last used", <RelativeTime key="used" at={one.last_used_at} />],
            ["Made", <RelativeTime key="made" at={one.created_at} />],
            ["Made by", one.created_by],
            [
              "The old secret is valid until",
              one.previous_valid_until === null ? undefined : <RelativeTime key="old" at={one.previous_valid_until} />,
            ],
            ["Revoked", one.revoked_at === null ? undefined : <RelativeTime key="revoked" at={one.revoked_at} />],
          ]}
        />
      </Section>
    </>
  );
}

function Rotate({ one, onSecret }: { readonly one: Token; readonly onSecret: (secret: string) => void }): ReactNode {
  return (
    <VerbButton
      verb="Rotate"
      what={`the token ${one.name}`}
      effect="The hub makes a new secret and shows it once. The old secret stays valid for an hour."
      right="manage_people"
      asksReason={false}
      disabledBecause={
        one.name === FIRST_TOKEN
          ? "The hub rotates its first token by the file admin-token in its state folder."
          : one.status === "valid"
            ? null
            : `The token is ${one.status}. Make a new one.`
      }
      changes={["tokens"]}
      run={async ({ values: { days } }) => {
        const body = { expires_in_days: Number(days) };
        const { token } = await read(
          api.POST("/api/v1/admin/tokens/{id}/rotate", { params: { path: { id: one.id } }, body }),
        );
        onSecret(token);
      }}
      initial={{ days: DAYS as number | string }}
      fields={({ values, set }) => (
        <NumberInput
          label="Days until the new secret expires"
          min={1}
          max={MOST_DAYS}
          clampBehavior="strict"
          allowDecimal={false}
          value={values.days}
          onChange={(days) => set({ days })}
          data-autofocus
        />
      )}
    />
  );
}

const Revoke = ({ one }: { readonly one: Token }): ReactNode => (
  <VerbButton
    verb="Revoke"
    what={`the token ${one.name}`}
    effect="The token ends on every hub at once. Programs with the token are refused, and sessions of the token end."
    final
    right="manage_people"
    disabledBecause={one.status === "valid" ? null : `The token is ${one.status} already.`}
    changes={["tokens"]}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/tokens/{id}/revoke", {
          params: { path: { id: one.id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);

import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { Note } from "../../parts/note.tsx";
import { Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { Failure } from "../../parts/states.tsx";
import { counted, words } from "../../parts/tones.ts";

type Verified = Answer<"verifyAuditLogs">;

/** The result of checking the whole audit chain, which the hub verifies part by part. */
interface Whole {
  readonly entries: number;
  readonly through: Verified["through"];
  readonly faults: Verified["faults"];
  readonly faultCount: number;
  readonly unsealed: number | null;
}

async function verifyAll(): Promise<Whole> {
  let whole: Whole = {
    entries: 0,
    through: { sequence: 0, entry_sha256: "" },
    faults: [],
    faultCount: 0,
    unsealed: null,
  };
  for (;;) {
    const query = whole.through.sequence === 0 ? {} : { after: whole.through.sequence };
    const part = await read(api.GET("/api/v1/admin/audit-logs/verify", { params: { query } }));
    whole = {
      entries: whole.entries + part.entries,
      through: part.through,
      faults: [...whole.faults, ...part.faults].slice(0, 50),
      faultCount: whole.faultCount + part.fault_count,
      unsealed: part.unsealed,
    };
    if (part.complete || part.entries === 0) return whole;
  }
}

/** Lets the hub verify the hash chain of all audit entries. */
export function Verify(): ReactNode {
  const verifying = useMutation({ mutationFn: verifyAll });
  return (
    <Section
      title="Hash chain"
      aside={
        <Button variant="default" loading={verifying.isPending} onClick={() => verifying.mutate()}>
          Verify
        </Button>
      }
    >
      <div role="status">
        {verifying.isError ? <Failure error={verifying.error} /> : null}
        {verifying.data === undefined ? (
          <p className={parts.prose}>
            The hub checks that nobody changed, removed or reordered entries. To prove it to somebody who does not trust
            the hub, compare with a head that is kept elsewhere: <code>muster audit verify --head=...</code>
          </p>
        ) : (
          <Result whole={verifying.data} />
        )}
      </div>
    </Section>
  );
}

function Result({ whole }: { readonly whole: Whole }): ReactNode {
  const { entries, through, faults, faultCount } = whole;
  if (faultCount === 0)
    return (
      <Note tone="good" title={`${counted(entries, "entry", "entries")} form one whole chain`}>
        The head is entry {through.sequence}, <code>{through.entry_sha256}</code>
      </Note>
    );
  return (
    <Note tone="bad" title={`${counted(faultCount, "fault")} in ${counted(entries, "entry", "entries")}`}>
      <ul>
        {faults.map(({ code, sequence, message }) => (
          <li key={`${code} ${sequence}`}>
            entry {sequence}: {words(code)}. {message}
          </li>
        ))}
      </ul>
    </Note>
  );
}

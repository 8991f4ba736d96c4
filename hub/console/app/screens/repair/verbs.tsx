import { NativeSelect, Textarea } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { everyValue } from "../../api/every-value.ts";
import type { Body } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given } from "../../verbs/verb-dialog.tsx";
import { Claim } from "./claim.tsx";
import type { Repair } from "./repair-questions.ts";
import { Report } from "./report.tsx";
import { useVerbOf } from "./verb-of.ts";

interface OfCase {
  readonly one: Repair;
}
/** The verbs of a case in the order of a repair. A verb that cannot apply says why. */
export const RepairVerbs = ({ one }: OfCase): ReactNode => (
  <>
    <Request one={one} />
    <Plain one={one} verb="withdraw" />
    <Claim one={one} />
    <Report one={one} />
    <Validate one={one} />
    <Plain one={one} verb="close" />
    <Plain one={one} verb="escalate" />
  </>
);

const PLAIN = {
  withdraw: {
    title: "Withdraw",
    effect: "The machine is no longer offered for repair. It stays out of service.",
  },
  close: {
    title: "Close",
    effect: "The machine leaves its repair and loses its marks, so that it may take a tenant again.",
  },
  escalate: {
    title: "Escalate",
    effect:
      "A person of the provider takes the machine over. An attempt that is under way ends, and with it its account on the host.",
  },
} as const;

function Plain({ one, verb }: OfCase & { readonly verb: keyof typeof PLAIN }): ReactNode {
  const shared = useVerbOf(one, verb);
  return (
    <VerbButton
      {...shared}
      verb={PLAIN[verb].title}
      effect={PLAIN[verb].effect}
      run={({ reason, headers }) =>
        read(
          api.POST(`/api/v1/admin/repairs/{id}/${verb}`, {
            params: { path: { id: one.id }, header: headers },
            body: { reason },
          }),
        )
      }
    />
  );
}

function Request({ one }: OfCase): ReactNode {
  const shared = useVerbOf(one, "request");
  const [evidence, setEvidence] = useState("");
  const run = ({ reason, headers }: Given) => {
    const told = evidence.trim() === "" ? {} : { evidence: evidence.trim() };
    return read(
      api.POST("/api/v1/admin/repairs/{id}/request", {
        params: { path: { id: one.id }, header: headers },
        body: { reason, ...told },
      }),
    );
  };
  return (
    <VerbButton
      {...shared}
      verb="Request"
      effect="A repair team or a person may then claim the machine. After an attempt the hub asks for new evidence."
      run={run}
    >
      <Textarea
        label="New evidence"
        description="What is newly known of the fault. Needed after an attempt at the machine."
        mb="xs"
        rows={3}
        maxLength={2048}
        value={evidence}
        onChange={(event) => setEvidence(event.currentTarget.value)}
      />
    </VerbButton>
  );
}

type Result = Body<"validateRepair">["result"];
const RESULTS: Readonly<Record<Result, string>> = {
  passed: "passed: the machine is sound",
  failed: "failed: the machine needs another attempt",
};

function Validate({ one }: OfCase): ReactNode {
  const shared = useVerbOf(one, "validate");
  const [result, setResult] = useState<Result>("passed");
  return (
    <VerbButton
      {...shared}
      verb="Validate"
      effect="You have tested the machine after its cleaning. The reason says which tests ran, and what they showed."
      run={({ reason, headers }) =>
        read(
          api.POST("/api/v1/admin/repairs/{id}/validate", {
            params: { path: { id: one.id }, header: headers },
            body: { reason, result },
          }),
        )
      }
    >
      <NativeSelect
        label="Result of the tests"
        mb="xs"
        data={everyValue<Result>({ passed: true, failed: true }).map((value) => ({ value, label: RESULTS[value] }))}
        value={result}
        onChange={(event) => setResult(event.currentTarget.value as Result)}
      />
    </VerbButton>
  );
}

import { NativeSelect, Textarea } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { everyValue } from "../../api/every-value.ts";
import type { Body } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given, Typed } from "../../verbs/verb-dialog.tsx";
import { Claim } from "./claim.tsx";
import type { Repair } from "./repair-questions.ts";
import { Report } from "./report.tsx";
import { useVerbOf } from "./verb-of.ts";

interface OfCase {
  readonly one: Repair;
}
/** The buttons for the verbs of a repair case, in the order in which a repair uses them. A verb that cannot apply says why. */
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
  const run = ({ reason, headers, values: { evidence } }: Given & Typed<{ evidence: string }>) => {
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
      initial={{ evidence: "" }}
      fields={({ values, set }) => (
        <Textarea
          label="New evidence"
          description="What is newly known of the fault. Needed after an attempt at the machine."
          mb="xs"
          rows={3}
          maxLength={2048}
          value={values.evidence}
          onChange={(event) => set({ evidence: event.currentTarget.value })}
        />
      )}
    />
  );
}

type Result = Body<"validateRepair">["result"];
const RESULTS: Readonly<Record<Result, string>> = {
  passed: "passed: the machine is sound",
  failed: "failed: the machine needs another attempt",
};

function Validate({ one }: OfCase): ReactNode {
  const shared = useVerbOf(one, "validate");
  return (
    <VerbButton
      {...shared}
      verb="Validate"
      effect="You have tested the machine after its cleaning. The reason says which tests ran, and what they showed."
      run={({ reason, headers, values: { result } }) =>
        read(
          api.POST("/api/v1/admin/repairs/{id}/validate", {
            params: { path: { id: one.id }, header: headers },
            body: { reason, result },
          }),
        )
      }
      initial={{ result: "passed" as Result }}
      fields={({ values, set }) => (
        <NativeSelect
          label="Result of the tests"
          mb="xs"
          data={everyValue<Result>({ passed: true, failed: true }).map((value) => ({ value, label: RESULTS[value] }))}
          value={values.result}
          onChange={(event) => set({ result: event.currentTarget.value as Result })}
        />
      )}
    />
  );
}

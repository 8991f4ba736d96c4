import { NativeSelect, NumberInput, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { everyValue } from "../../api/every-value.ts";
import type { Body } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";
import { changedBy, type Node } from "./node-questions.ts";

type Template = NonNullable<Body<"setNodeHealthOverride">["template"]>;

const TEMPLATES = everyValue<Template>({
  InternalMaintenance: true,
  Degraded: true,
  HostUpdate: true,
  Validation: true,
  OutForRepair: true,
  TenantReportedIssue: true,
  RequestRepair: true,
  RequestOnlineRepair: true,
  SuppressExternalAlerting: true,
  StopRebootForAutomaticRecoveryFromStateMachine: true,
  MarkHealthy: true,
});
const MOST_MINUTES = 527_040;
const EMPTY = { template: "InternalMaintenance" as Template, message: "", tenant: "", minutes: "" as number | string };

/** The template `RequestRepair` opens a repair, which writes the text for tenants itself and does not end by itself. */
const isRequest = (template: Template): boolean => template === "RequestRepair";

/** The health override `MarkHealthy` hides the node's other health overrides, except Muster's own, and has no alert. */
const hasAlert = (template: Template): boolean => template !== "MarkHealthy";

function bodyOf({ template, message, tenant, minutes }: typeof EMPTY, reason: string): Body<"setNodeHealthOverride"> {
  const alert = hasAlert(template)
    ? {
        message: message.trim(),
        ...(isRequest(template) || tenant.trim() === "" ? {} : { tenant_message: tenant.trim() }),
      }
    : {};
  const end = isRequest(template) || minutes === "" ? {} : { expires_in_minutes: Number(minutes) };
  return { template, reason, ...alert, ...end };
}

/** Sets a health override, which says what is wrong with the node, from a template of NVIDIA NICo. */
export const SetOverride = ({ node }: { readonly node: Node }): ReactNode => (
  <VerbButton
    verb="Set override"
    what={`of ${node.hostname}`}
    effect="The override says what is wrong with the node, and replaces the older one of the same template."
    right="operate_nodes"
    disabledBecause={node.status === "deleted" ? "A deleted node takes no health override." : null}
    changes={changedBy(node.id)}
    run={({ reason, headers, values }) =>
      read(
        api.POST("/api/v1/admin/nodes/{id}/health-overrides", {
          params: { path: { id: node.id }, header: headers },
          body: bodyOf(values, reason),
        }),
      )
    }
    initial={EMPTY}
    fields={Fields}
  />
);

const Fields = ({ values, set }: Typed<typeof EMPTY>): ReactNode => (
  <>
    <NativeSelect
      label="Template"
      mb="xs"
      data={[...TEMPLATES]}
      value={values.template}
      onChange={(event) => set({ template: event.currentTarget.value as Template })}
    />
    {hasAlert(values.template) ? (
      <>
        <TextInput
          label="What is wrong, for operators"
          mb="xs"
          required
          withAsterisk={false}
          maxLength={1024}
          value={values.message}
          onChange={(event) => set({ message: event.currentTarget.value })}
        />
        {isRequest(values.template) ? (
          <p>This template opens a repair of the node and requests it.</p>
        ) : (
          <TextInput
            label="What the tenant may know"
            description="Optional."
            mb="xs"
            maxLength={512}
            value={values.tenant}
            onChange={(event) => set({ tenant: event.currentTarget.value })}
          />
        )}
      </>
    ) : null}
    {isRequest(values.template) ? null : (
      <NumberInput
        label="Minutes until it ends by itself"
        description="Empty: only a person ends it."
        mb="xs"
        min={1}
        max={MOST_MINUTES}
        allowDecimal={false}
        value={values.minutes}
        onChange={(minutes) => set({ minutes })}
      />
    )}
  </>
);

import { Checkbox, NumberInput, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Body } from "../../api/schema.ts";
import { useHub } from "../../api/session.ts";
import { partsOf } from "../../forms/checks.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given, Typed } from "../../verbs/verb-dialog.tsx";
import type { Repair } from "./repair-questions.ts";
import { useVerbOf } from "./verb-of.ts";

const MOST_HOURS = 168;
const NO_ACCESS = { wanted: false, tenant: "", login_user: "", keys: "", root: false };
type Access = typeof NO_ACCESS;
const USUAL = { hours: 24 as number | string, access: NO_ACCESS };
type Values = typeof USUAL;

/**
 * Converts the form's fields for the repairer's account on the host into the request's form. The request of a repair system may leave the tenant of
 * the account out, because the hub knows the tenant of the system's token.
 */
const accessOf = ({ tenant, login_user, keys, root }: Access): NonNullable<Body<"claimRepair">["access"]> => ({
  login_user: login_user.trim(),
  ssh_keys: partsOf(keys, /\r?\n/),
  root,
  ...(tenant.trim() === "" ? {} : { tenant: tenant.trim() }),
});

/**
 * Claims the machine, or extends the claim. A repair team gets access to the host only by claiming a full repair, which begins after the tenant has
 * left, and not by claiming an online repair.
 */
export function Claim({ one }: { readonly one: Repair }): ReactNode {
  const shared = useVerbOf(one, "claim");
  const extends_ = one.state === "claimed";
  const mayAccess = !extends_ && one.mode === "full";
  const run = ({ reason, headers, values: { hours, access } }: Given & Typed<Values>) =>
    read(
      api.POST("/api/v1/admin/repairs/{id}/claim", {
        params: { path: { id: one.id }, header: headers },
        body: {
          reason,
          hours: Number(hours),
          ...(mayAccess && access.wanted ? { access: accessOf(access) } : {}),
        },
      }),
    );
  return (
    <VerbButton
      {...shared}
      key={extends_ ? "extend" : "claim"}
      verb={extends_ ? "Extend claim" : "Claim"}
      effect={
        extends_
          ? "The claim ends so many hours from now. An attempt lasts 14 days at most."
          : "You repair the machine, and nobody else may claim it. A claim that ends without a report counts as a failed attempt."
      }
      run={run}
      initial={USUAL}
      fields={({ values: { hours, access }, set }) => (
        <>
          <NumberInput
            label="Hours of the claim"
            mb="xs"
            required
            withAsterisk={false}
            min={1}
            max={MOST_HOURS}
            allowDecimal={false}
            value={hours}
            onChange={(value) => set({ hours: value })}
          />
          {mayAccess ? (
            <AccessFields access={access} onChange={(more) => set({ access: { ...access, ...more } })} />
          ) : null}
        </>
      )}
    />
  );
}

function AccessFields({
  access,
  onChange,
}: {
  readonly access: Access;
  readonly onChange: (more: Partial<Access>) => void;
}): ReactNode {
  const { you } = useHub();
  return (
    <>
      <Checkbox
        label="An account on the host for the time of the attempt"
        mb="xs"
        checked={access.wanted}
        onChange={(event) => onChange({ wanted: event.currentTarget.checked })}
      />
      {access.wanted ? (
        <>
          {you.role === "repair" ? null : (
            <TextInput
              label="Name of the repair team"
              mb="xs"
              required
              withAsterisk={false}
              value={access.tenant}
              onChange={(event) => onChange({ tenant: event.currentTarget.value })}
            />
          )}
          <TextInput
            label="Account"
            mb="xs"
            required
            withAsterisk={false}
            pattern="[a-z][a-z0-9_\-]*"
            maxLength={32}
            value={access.login_user}
            onChange={(event) => onChange({ login_user: event.currentTarget.value })}
          />
          <Textarea
            label="SSH keys, one a line"
            mb="xs"
            required
            withAsterisk={false}
            rows={3}
            value={access.keys}
            onChange={(event) => onChange({ keys: event.currentTarget.value })}
          />
          <Checkbox
            label="With root"
            mb="xs"
            checked={access.root}
            onChange={(event) => onChange({ root: event.currentTarget.checked })}
          />
        </>
      ) : null}
    </>
  );
}

import { createHash } from "node:crypto";
import { DESTINATION_TEXTS } from "../../shared/sanitization-destination.ts";
import type { SanitizationRecord } from "../../shared/sanitization-record.ts";
import { html as htmlText } from "./html-text.ts";

const STYLE = `
  :root { font: 14px/1.45 system-ui, sans-serif; color: #111; background: #fff; }
  body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
  table { border-collapse: collapse; width: 100%; } th, td { border: 1px solid #999; padding: .2rem .4rem; text-align: left; vertical-align: top; }
  th { background: #eee; } td, code { overflow-wrap: anywhere; } code { font: 12px/1.4 ui-monospace, monospace; }
  @media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
`;

/**
 * The content security policy of a printed page, which allows no script, no request, and only the page's own style. A printed page contains its
 * content security policy too, so that the policy also protects a reader who opens a saved page.
 */
export const PRINTED_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'`;

const html = (value: unknown): string => htmlText(String(value ?? "-"));

type Cell = string | number | boolean | null | undefined;

function tableOf(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  if (rows.length === 0) return "<p>None.</p>";
  const head = heads.map((one) => `<th scope="col">${html(one)}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${html(cell)}</td>`).join("")}</tr>`);
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`;
}

const factsOf = (facts: Readonly<Record<string, Cell>>): string => {
  const rows = Object.entries(facts).map(
    ([name, value]) => `<tr><th scope="row">${html(name)}</th><td>${html(value)}</td></tr>`,
  );
  return `<table><tbody>${rows.join("\n")}</tbody></table>`;
};
const listOf = (sentences: readonly string[]): string =>
  sentences.length === 0 ? "<p>None.</p>" : `<ul>${sentences.map((one) => `<li>${html(one)}</li>`).join("\n")}</ul>`;
const section = (title: string, content: string): string => `<h2>${html(title)}</h2>\n${content}`;

const evidenceText = (evidence: object): string =>
  Object.entries(evidence)
    .map(([name, value]) => `${name}: ${value}`)
    .join("; ");

function generalFacts({ node, allocation, operation, ...record }: SanitizationRecord): Readonly<Record<string, Cell>> {
  return {
    Record: record.record_id,
    Node: `${node.hostname} (${node.id}), generation ${node.generation}`,
    Machine: [node.vendor, node.product, node.system_id, node.system_uuid].filter((one) => one !== null).join(", "),
    "Property number (asset tag)": node.property_number,
    Location: locationOf(record),
    "Number in the node's chain": record.sequence,
    "SHA-256 of the record before": record.previous_sha256,
    Tenant: allocation === null ? "none" : `${allocation.tenant}, login user ${allocation.login_user}`,
    "Tenant was granted root": allocation?.granted_root,
    "Tenant's other ways to root": allocation?.root_by?.join(", "),
    Allocation: allocation === null ? null : `${allocation.id}, ${allocation.from ?? "?"} to ${allocation.to ?? "?"}`,
    "Record of the same allocation before it": record.follows,
    "How the tenant's use ended without a turnover": endOf(record),
    Operation: `${operation.mode} ${operation.decommission_id}, requested by ${operation.requested_by}: ${operation.reason}`,
    Destination: record.destination && `${record.destination}: ${DESTINATION_TEXTS[record.destination]}`,
    "Cleaned by": performerOf(record),
    "Validated by": validatorOf(record),
    Trust: record.trust,
    Began: record.started_at,
    Ended: record.finished_at,
  };
}

const locationOf = ({ location }: Pick<SanitizationRecord, "location">): string | undefined =>
  location &&
  `site ${location.site ?? "?"}, room ${location.room ?? "?"}, rack ${location.rack ?? "?"}, unit ${location.unit ?? "?"}`;
const performerOf = ({ performed_by: by }: Pick<SanitizationRecord, "performed_by">): string | undefined =>
  by && `${by.name} (${by.title})${by.by_order_of === undefined ? "" : `, by order of ${by.by_order_of}`}`;
const validatorOf = ({ validated_by: by }: Pick<SanitizationRecord, "validated_by">): string | undefined =>
  by && `${by.name} (${by.title}), by ${by.check}, at ${by.at}`;

const endOf = ({ without_turnover: without }: Pick<SanitizationRecord, "without_turnover">): string | undefined =>
  without &&
  `${without.because}; ${without.begun === null ? "no operation cleaned the host" : `${without.begun.mode} ${without.begun.decommission_id} began to clean the host`}`;

const stepRows = ({ tasks }: SanitizationRecord): Cell[][] =>
  tasks.flatMap(({ type, error, steps }) =>
    error === null
      ? steps.map((one) => [type, one.step, one.target, one.outcome, one.message, evidenceText(one.evidence)])
      : [[type, "-", "-", "failed", error, ""]],
  );

const mediumRows = ({ media }: SanitizationRecord): Cell[][] =>
  media.map((one) => [
    one.kind,
    [one.maker, one.model, one.firmware === undefined ? null : `firmware ${one.firmware}`]
      .filter((part) => part !== null)
      .join(" "),
    one.serial,
    one.source,
    one.method,
    one.technique,
    [one.tool, one.tool_version].filter((part) => part !== null).join(" "),
    `${one.bytes_treated ?? "?"} of ${one.bytes_total ?? "?"}`,
    [one.verification, one.verification_result].filter((part) => part !== null).join(": "),
  ]);

const releaseFacts = ({ release }: SanitizationRecord): string =>
  release === undefined
    ? "<p>The host kept its system.</p>"
    : factsOf({
        "Machine in MAAS": `${release.maas_system_id}, of generation ${release.generation}`,
        "Erase of the disks": release.erase,
        Evidence: release.evidence,
        "Person who continued without evidence of the erase": release.waived_by,
        "Disks in the report of MAAS's release script": release.disks_reported,
        "Blocks compared with their earlier content": release.blocks_compared,
        "Blocks whose earlier content only a tenant's system with root told": release.blocks_doubted,
        "Disks of which the new system read only blank blocks": release.disks_blank,
        "Disks that speak against the erase": release.disk_findings?.join("; "),
        "Person who continued although disks speak against the erase": release.disks_waived_by,
      });

const namesOf = ({ names, more }: { readonly names: readonly string[]; readonly more: number }): string =>
  [...names, ...(more === 0 ? [] : [`${more} more`])].join(", ");

interface Signatures {
  readonly recordSha256: string;
  readonly agentSignature: string | null;
  readonly countersignature: string;
  readonly hubSignature: string;
  readonly orderKey: string;
}

function signatureFacts({ format, rules, agent, unsigned_reason, hub }: SanitizationRecord, signed: Signatures) {
  return factsOf({
    "SHA-256 of the record": signed.recordSha256,
    "Format and rules": `${format}, rules ${rules ?? 1}`,
    Agent: agent === null ? "none" : `version ${agent.version}, boot ${agent.boot_id}`,
    "Certificate of the agent": agent?.certificate_serial,
    "SHA-256 of the agent's public key": agent?.public_key_sha256,
    "Why the agent did not sign": unsigned_reason,
    "Signature of the agent": signed.agentSignature,
    Hub: `version ${hub.version}`,
    "Order key of the hub": signed.orderKey,
    "Text that the hub signed": signed.countersignature,
    "Signature of the hub": signed.hubSignature,
  });
}

/** The result of a validation of the sanitization record. */
interface Validation {
  readonly validatedBy: string;
  readonly role: string;
  readonly isPerson: boolean;
  readonly title: string | null;
  readonly result: string;
  readonly reason: string;
  readonly recordSha256: string;
  readonly createdAt: Date;
}

const validationRows = (validations: readonly Validation[]): Cell[][] =>
  validations.map(({ validatedBy, isPerson, role, title, result, reason, recordSha256, createdAt }) => [
    isPerson ? validatedBy : `${validatedBy} (a credential that may be in the hands of anybody)`,
    title,
    role,
    result,
    reason,
    recordSha256,
    createdAt.toISOString(),
  ]);

/**
 * Returns a sanitization record as an HTML page for printing, which has no script and loads nothing. The HTML page of a sanitization record also
 * shows the record's validations, which the record itself does not contain.
 */
export function sanitizationPage(
  record: SanitizationRecord,
  signed: Signatures,
  validations: readonly Validation[],
): string {
  const { residue, verdict, reasons, claims, not_covered, cut } = record;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${PRINTED_PAGE_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sanitization record ${html(record.record_id)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Sanitization record of ${html(record.node.hostname)}: ${html(verdict)}</h1>
<p>This page is a copy for reading. Verify the exported record: <code>muster verify-record</code></p>
${factsOf(generalFacts(record))}
${section(
  "Reasons for the verdict",
  tableOf(
    ["Reason", "About"],
    reasons.map(({ code, about }) => [code, about]),
  ),
)}
${section("Claims", listOf(claims))}
${section("Not covered", listOf(not_covered))}
${section("Media", tableOf(["Kind", "Model", "Serial number", "Source", "Method", "Technique", "Tool", "Bytes treated", "Verification"], mediumRows(record)))}
${section("Release of the earlier system", releaseFacts(record))}
${section(
  "Required steps",
  tableOf(
    ["Task", "Step"],
    record.required.map(({ type, step }) => [type, step ?? "all steps"]),
  ),
)}
${section("Cleaning steps", tableOf(["Task", "Step", "Target", "Outcome", "Message", "Evidence"], stepRows(record)))}
${section(
  "Tasks",
  tableOf(
    ["Task", "Type", "Delivery", "SHA-256 of the result"],
    record.tasks.map((one) => [one.task_id, one.type, one.epoch, one.result_sha256]),
  ),
)}
${section("Tasks that the agent did not confirm", listOf(record.unconfirmed_tasks))}
${section(
  "Evidence that the hub does not believe",
  tableOf(
    ["Task", "Disk", "Code", "Message"],
    (record.refused_evidence ?? []).map((one) => [one.task_id, one.target, one.code, one.message]),
  ),
)}
${section(
  "GPU memory",
  tableOf(
    ["GPU", "Level", "Share", "Bytes overwritten", "Bytes", "Required level", "Required share", "Driver library"],
    record.gpus.map((one) => [
      one.uuid,
      one.level,
      one.share,
      one.bytes_overwritten,
      one.bytes_total,
      one.required_level,
      one.required_share,
      one.driver_library ?? null,
    ]),
  ),
)}
${section(
  `Residue: ${residue?.verdict ?? "not looked for"}`,
  tableOf(
    ["Item", "Status", "Names", "Reason"],
    (residue?.items ?? []).map((one) => [one.item, one.status, namesOf(one), one.reason]),
  ),
)}
${section(
  "Left out, because the record would be too large",
  tableOf(
    ["What", "Kept", "Of"],
    cut.map(({ what, kept, of }) => [what, kept, of]),
  ),
)}
${section("Signatures", signatureFacts(record, signed))}
${section(
  "Validations, which the hub keeps beside the record",
  tableOf(
    ["Validated by", "Title", "Role in Muster", "Result", "Reason", "SHA-256 of the record", "At"],
    validationRows(validations),
  ),
)}
</body>
</html>
`;
}

import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { z } from "zod";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { type Answer, httpCall, isSuccess, NoAnswer } from "../outbound/http-request.ts";
import { BmcError, type BmcErrorCode, type BmcLogin, type BmcPort, type BmcPower } from "./port.ts";

/** The time limit of one Redfish request; a call to a BMC needs at most four Redfish requests. */
const DEADLINE_MS = 20_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
const TOLD = 200;
const SYSTEMS = "/redfish/v1/Systems";

const Link = z.object({ "@odata.id": z.string().startsWith("/redfish/").max(500) });
const Systems = z.object({ Members: z.array(Link).max(100) });
const System = z.object({
  "@odata.etag": z.string().max(200).optional(),
  PowerState: z.string().nullish(),
  Actions: z.object({ "#ComputerSystem.Reset": z.object({ target: z.string().startsWith("/redfish/").max(500) }) }),
});
type System = z.output<typeof System> & { readonly path: string };

export interface RedfishOptions {
  readonly port: number;
  readonly signal: AbortSignal;
  /** The path of a PEM file with the CA of the BMCs' certificates. If `caFile` is null, the hub accepts any certificate of a BMC, as MAAS does. */
  readonly caFile: string | null;
}

/**
 * Talks Redfish (DSP0266) to a BMC over HTTPS with basic authentication, which opens no session. The Redfish client follows no redirect and no link
 * to another host, because following them could send the login to another server.
 */
export function redfishBmc(login: BmcLogin, options: RedfishOptions): BmcPort {
  const ask = asker(login, options);
  const system = async (): Promise<System> => {
    const { Members } = parsed(login, Systems, await ask("GET", SYSTEMS));
    const [sole, ...others] = Members;
    // If the BMC names no Redfish system, or several, the hub cannot tell which system is the host.
    if (sole === undefined || others.length > 0)
      throw fault(login, "action_failed", `has ${Members.length} Redfish systems, and one is needed`);
    const path = sole["@odata.id"];
    return { ...parsed(login, System, await ask("GET", path)), path };
  };
  const reset = async (type: "ForceOff" | "On"): Promise<void> => {
    const { Actions } = await system();
    await ask("POST", Actions["#ComputerSystem.Reset"].target, { ResetType: type });
  };
  return {
    power: async () => powerOf(login, (await system()).PowerState ?? ""),
    bootFromNetworkOnce: async () => {
      const { path, "@odata.etag": etag } = await system();
      const boot = { Boot: { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Pxe" } };
      await ask("PATCH", path, boot, etag === undefined ? {} : { "if-match": etag });
    },
    powerOff: () => reset("ForceOff"),
    powerOn: () => reset("On"),
  };
}

type Ask = (
  method: "GET" | "PATCH" | "POST",
  path: string,
  body?: unknown,
  more?: Readonly<Record<string, string>>,
) => Promise<string>;

function asker(login: BmcLogin, { port, signal, caFile }: RedfishOptions): Ask {
  const host = isIPv6(login.address) ? `[${login.address}]` : login.address;
  const basic = Buffer.from(`${login.user}:${login.pass.reveal()}`).toString("base64");
  return async (method, path, body, more = {}) => {
    const answer = await httpCall({
      url: new URL(path, `https://${host}:${port}`),
      method,
      headers: {
        authorization: `Basic ${basic}`,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...more,
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      maxBytes: MAX_ANSWER_BYTES,
      ...(await trust(login, caFile)),
    }).catch((error: unknown) => {
      throw error instanceof NoAnswer ? unanswered(login, error) : error;
    });
    if (isSuccess(answer.status)) return answer.body;
    throw refusal(login, `${method} ${path}`, answer);
  };
}

async function trust(login: BmcLogin, caFile: string | null): Promise<{ ca: string } | { anyCertificate: true }> {
  if (caFile === null) return { anyCertificate: true };
  const ca = await readFile(caFile, "utf8").catch(() => {
    throw fault(login, "untrusted", `cannot be trusted: ${caFile}, which MUSTER_BMC_CACERT names, cannot be read`);
  });
  return { ca };
}

function unanswered(login: BmcLogin, { reason }: NoAnswer): BmcError {
  return /CERT|SIGNATURE|ISSUER|ALTNAME/.test(reason)
    ? fault(login, "untrusted", `has a certificate that is not trusted (${reason})`)
    : fault(login, "no_answer", `did not answer by Redfish (${reason})`);
}

function refusal(login: BmcLogin, request: string, { status, body }: Answer): BmcError {
  if (status === 401 || status === 403) return fault(login, "login_refused", `refused the login (${status})`);
  const told = withoutCredentials(body, [login.pass]).slice(0, TOLD);
  const code: BmcErrorCode = status === 503 ? "no_answer" : "action_failed";
  return fault(login, code, `answered ${request} with ${status}: ${told}`);
}

function parsed<T>(login: BmcLogin, schema: z.ZodType<T>, body: string): T {
  try {
    return schema.parse(JSON.parse(body));
  } catch {
    throw fault(login, "action_failed", "answered with something that is not Redfish");
  }
}

function powerOf(login: BmcLogin, state: string): BmcPower {
  if (state === "On") return "on";
  if (state === "Off") return "off";
  if (state === "PoweringOn" || state === "PoweringOff") return "changing";
  throw fault(login, "action_failed", "did not say whether the power is on");
}

const fault = (login: BmcLogin, code: BmcErrorCode, what: string): BmcError =>
  new BmcError(code, login, `BMC ${login.address} ${what}.`);

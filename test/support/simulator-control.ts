import { z } from "zod";

const Machine = z.looseObject({ system_id: z.string(), hostname: z.string(), status: z.int() });
const Box = z.looseObject({ id: z.string(), bmcAddress: z.string() });

export class SimulatorControl {
  readonly #url: string;
  constructor(url: string) {
    this.#url = url;
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await fetch(`${this.#url}/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  fault = (fault: unknown) => this.call("POST", "faults", fault);
  clearFaults = () => this.call("DELETE", "faults");
  machines = async () => z.array(Machine).parse(await this.call("GET", "machines"));
  async setBmcPassword(address: string, bmcPass: string): Promise<void> {
    const box = z
      .array(Box)
      .parse(await this.call("GET", "hardware"))
      .find((one) => one.bmcAddress === address);
    await this.call("POST", `hardware/${box?.id}`, { bmcPass });
  }
}

import { createHmac, randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { recordDomainEvent } from "../../hub/db/queries/domain-events.ts";
import type { InTx } from "../../hub/db/tx.ts";
import { EventFeed } from "../../hub/events/event-feed.ts";
import { startWebhookSender } from "../../hub/events/webhook-sender.ts";
import type { ApiHarness } from "./api-harness.ts";
import { quietLog } from "./log.ts";

export const HOOKS = "/api/v1/admin/webhooks";

export interface Received {
  readonly id: string;
  readonly signatures: readonly string[];
  readonly timestamp: string;
  readonly body: string;
  readonly subject: string;
}

type Answer = number | null | { readonly status: number; readonly headers: Readonly<Record<string, string>> };

/**
 * A receiver of webhooks, whose function `answer` returns the status and headers of the next HTTP answer. If `answer` returns null, the receiver
 * never answers a request.
 */
export class Receiver {
  readonly received: Received[] = [];
  answer: (nth: number, one: Received) => Answer | Promise<Answer> = () => 204;
  #server: Server | null = null;

  async start(): Promise<string> {
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const header = (name: string) => String(request.headers[name] ?? "");
      const one = {
        id: header("webhook-id"),
        signatures: header("webhook-signature").split(" "),
        timestamp: header("webhook-timestamp"),
        body,
        subject: (JSON.parse(body) as { subject: string }).subject,
      };
      this.received.push(one);
      const answer = await this.answer(this.received.length, one);
      if (answer === null) return;
      const { status, headers } = typeof answer === "number" ? { status: answer, headers: {} } : answer;
      response.writeHead(status, status >= 300 && status < 400 ? { location: "/elsewhere", ...headers } : headers);
      response.end();
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}

export const newSecret = () => `whsec_${randomBytes(32).toString("base64")}`;
export const signs = (secret: string, one: Received): boolean => {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const expected = createHmac("sha256", key).update(`${one.id}.${one.timestamp}.${one.body}`).digest("base64");
  return one.signatures.includes(`v1,${expected}`);
};

/** The function `close` stops the webhook sender as a stopping hub does. */
export function startSender(api: ApiHarness, secrets = api.secrets): { close(): Promise<void> } {
  const { db, inTx } = api.database.database;
  const feed = new EventFeed(db, quietLog);
  const sender = startWebhookSender({ db, inTx, secrets, feed, log: quietLog });
  return {
    close: async () => {
      await sender.close();
      feed.close();
    },
  };
}

export const writeEvent = (inTx: InTx, subject: string): Promise<void> =>
  inTx((tx) =>
    recordDomainEvent(tx, {
      type: "node.status.changed",
      subject,
      data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
    }),
  );

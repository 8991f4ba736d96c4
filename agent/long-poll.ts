import { z } from "zod";
import { type AgentFrame, HubFrame, Welcome } from "../shared/protocol/frames.ts";
import { type Channel, type ChannelEnd, ChannelRefused } from "./channel.ts";
import { askHub, HubRefusal, type TlsIdentity } from "./https.ts";
import type { OpenOptions } from "./socket.ts";

const WAIT_MS = 25_000;
/** After this long the WebSocket is tried again. */
const RETRY_SOCKET_MS = 60_000;
const Frames = z.object({ frames: z.array(HubFrame) });

/** The fallback where no WebSocket gets through: the same frames in requests. It ends by itself so that the WebSocket is tried again. */
export async function openLongPoll(options: OpenOptions): Promise<Channel> {
  const { hubUrl, identity, hello, take, log } = options;
  const tls: TlsIdentity = identity.tls;
  const base = `/internal/v1/nodes/${identity.nodeId}`;
  const { welcome } = await askHub(
    hubUrl,
    tls,
    { method: "POST", path: `${base}/sessions`, body: { hello } },
    z.object({ welcome: Welcome }),
  ).catch((error: unknown) => {
    throw error instanceof HubRefusal ? new ChannelRefused(error.code, error.message) : error;
  });
  const stop = new AbortController();
  const until = performance.now() + RETRY_SOCKET_MS;
  let sending: Promise<void> = Promise.resolve();
  const takeAll = (frames: readonly HubFrame[]): void => {
    for (const frame of frames) take(frame);
  };
  const deliver = async (frame: AgentFrame): Promise<void> => {
    const answer = await askHub(
      hubUrl,
      tls,
      { method: "POST", path: `${base}/frames`, body: { session_epoch: welcome.session_epoch, frames: [frame] } },
      Frames,
    );
    takeAll(answer.frames);
  };
  const poll = async (): Promise<ChannelEnd> => {
    try {
      while (!stop.signal.aborted && performance.now() < until) {
        const path = `${base}/tasks/wait?session_epoch=${welcome.session_epoch}&timeout_ms=${WAIT_MS}`;
        takeAll(
          (await askHub(hubUrl, tls, { method: "GET", path, timeoutMs: WAIT_MS + 15_000, signal: stop.signal }, Frames))
            .frames,
        );
      }
      return stop.signal.aborted
        ? { reason: "stopped", message: "the agent stops" }
        : { reason: "lost", message: "the WebSocket is tried again" };
    } catch (error) {
      if (stop.signal.aborted) return { reason: "stopped", message: "the agent stops" };
      return { reason: "lost", message: error instanceof Error ? error.message : String(error) };
    }
  };
  return {
    kind: "long_poll",
    welcome,
    ended: poll(),
    send: (frame) => {
      sending = sending
        .then(() => deliver(frame))
        .catch((error: unknown) => log.warn("a frame could not be delivered", { type: frame.type, error }));
    },
    close: () => stop.abort(),
  };
}

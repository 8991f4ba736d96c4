import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { NodeId } from "../../shared/ids.ts";
import { type Session, Sessions } from "./session.ts";

class Recorder {
  readonly ends: string[] = [];
  send(): void {}
  close(reason: string): void {
    this.ends.push(reason);
  }
  drop(): void {
    this.ends.push("dropped");
  }
}
const nodeId = NodeId.parse(randomUUID());
const session = (epoch: number, more: Partial<Session> = {}): Session & { channel: Recorder } => ({
  nodeId,
  generation: 1,
  epoch,
  serial: "s",
  bootId: "boot-1",
  address: null,
  bootReturned: false,
  trustTold: 0,
  heartbeatTtlMs: 10_000,
  heardAt: 0,
  settled: true,
  ...more,
  channel: new Recorder(),
});

describe("the sessions of a hub", () => {
  it("hold the newest session of each node, in whatever order sessions are added", () => {
    const sessions = new Sessions();
    const [first, second] = [session(1), session(2)];
    sessions.add(first);
    sessions.add(second);
    expect(first.channel.ends).toEqual(["superseded"]);
    expect(sessions.get(nodeId)).toBe(second);
    expect(sessions.remove(first)).toBe(false);
    expect(sessions.size).toBe(1);
  });

  it("never let an older session replace a newer one", () => {
    const sessions = new Sessions();
    const [late, newest] = [session(1), session(2)];
    sessions.add(newest);
    sessions.add(late);
    expect(sessions.get(nodeId)).toBe(newest);
    expect(late.channel.ends).toEqual(["superseded"]);
    expect(newest.channel.ends).toEqual([]);
  });

  it("drop a session that was silent for two heartbeat intervals and the allowance, and not earlier", () => {
    const sessions = new Sessions();
    const silent = session(1);
    sessions.add(silent);
    expect(sessions.dropSilent(65_000)).toEqual([]);
    expect(sessions.dropSilent(65_001)).toEqual([silent]);
    expect(silent.channel.ends).toEqual(["dropped"]);
  });

  it("return each contact once, and none of an ended session", () => {
    const sessions = new Sessions();
    const [first, second] = [session(1), session(2)];
    sessions.add(first);
    sessions.contact(first, 5);
    expect(first.heardAt).toBe(5);
    sessions.add(second);
    expect(sessions.takeContacts()).toEqual([]);
    sessions.contact(second, 6);
    sessions.contact(second, 7);
    expect(sessions.takeContacts()).toEqual([second]);
    expect(sessions.takeContacts()).toEqual([]);
  });
});

import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { NodeId } from "../../shared/ids.ts";
import { ansibleInventory } from "./ansible-inventory.ts";

const ID = NodeId.parse("00000000-0000-4000-8000-000000000001");
const command = (hostname: string, host: string | null, bootstrap_command = "printf %s 'a; b' | bash") => ({
  node_id: ID,
  hostname,
  host,
  maas_system_id: "abc123",
  bootstrap_command,
});
const UNSAFE = { tag: "!unsafe", resolve: (text: string) => ({ unsafe: text }) };

function read(...commands: ReturnType<typeof command>[]): unknown {
  const text = ansibleInventory({ expires_at: "2026-01-01T00:00:00.000Z", left_out: 0, commands });
  const document = parseDocument(text, { customTags: [UNSAFE] });
  expect(document.errors).toEqual([]);
  expect(document.warnings).toEqual([]);
  return document.toJS();
}

describe("an Ansible inventory of commands", () => {
  it("has one host for each command, with its address and its command as texts that Ansible does not expand", () => {
    expect(read(command("c01", "10.0.0.1"), command("c02", null))).toEqual({
      all: {
        children: {
          muster_adoption: {
            hosts: {
              c01: {
                ansible_host: { unsafe: "10.0.0.1" },
                muster_node_id: ID,
                muster_bootstrap_command: { unsafe: "printf %s 'a; b' | bash" },
              },
              c02: { muster_node_id: ID, muster_bootstrap_command: { unsafe: "printf %s 'a; b' | bash" } },
            },
          },
        },
      },
    });
  });

  it("without commands has no hosts", () => {
    expect(read()).toEqual({ all: { children: { muster_adoption: { hosts: {} } } } });
  });

  it.each(['a"b', "a\nb: c", "{{ x }}", "1e3", "yes", "#x", "&a", "*a", "a: b", "\u2028", "é", "\\"])(
    "keeps the text %j whole, whatever place it has",
    (hostile) => {
      expect(read(command(hostile, hostile, hostile))).toEqual({
        all: {
          children: {
            muster_adoption: {
              hosts: {
                [hostile]: {
                  ansible_host: { unsafe: hostile },
                  muster_node_id: ID,
                  muster_bootstrap_command: { unsafe: hostile },
                },
              },
            },
          },
        },
      });
    },
  );
});

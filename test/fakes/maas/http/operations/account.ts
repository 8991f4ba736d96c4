import { badFields } from "../../engine/refusal.ts";
import { newKey } from "../../state/seed.ts";
import { API } from "../../view/machine.ts";
import type { Call, Reply } from "../call.ts";
import { json } from "../call.ts";
import { requireAdmin } from "./access.ts";

function viewUser(user: Call["user"]): Record<string, unknown> {
  return {
    is_superuser: user.isSuperuser,
    username: user.username,
    email: user.email,
    is_local: true,
    resource_uri: `${API}/users/${user.username}/`,
  };
}

export function whoami(call: Call): Reply {
  return json(viewUser(call.user));
}

export function users(call: Call): Reply {
  return json(call.region.state.users.map(viewUser));
}

export function createUser(call: Call): Reply {
  requireAdmin(call);
  const username = call.data.required("username");
  if (call.region.state.users.some((user) => user.username === username))
    throw badFields({ username: ["A user with that username already exists."] });
  const user = {
    username,
    email: call.data.required("email"),
    isSuperuser: call.data.flag("is_superuser", false),
    tokens: [],
    sshKeys: [],
  };
  call.region.state.users.push(user);
  return json(viewUser(user));
}

export function createToken(call: Call): Reply {
  const token = {
    token_key: newKey(18),
    token_secret: newKey(32),
    consumer_key: newKey(18),
    name: call.form.get("name") || "MAAS consumer",
  };
  call.user.tokens.push(token);
  return json(token);
}

export function listTokens(call: Call): Reply {
  return json(
    call.user.tokens.map((token) => ({
      name: token.name,
      token: `${token.consumer_key}:${token.token_key}:${token.token_secret}`,
    })),
  );
}

export function deleteToken(call: Call): Reply {
  const key = call.form.required("token_key");
  call.user.tokens = call.user.tokens.filter((token) => token.token_key !== key);
  return { status: 204, body: "", contentType: "text/plain" };
}

export function sshKeys(call: Call): Reply {
  return json(call.user.sshKeys.map((key) => ({ key: key.key, id: key.id })));
}

export function addSshKey(call: Call): Reply {
  const key = { id: call.region.next("sshkey"), key: call.data.required("key") };
  call.user.sshKeys.push(key);
  const source = call.region.version === "3.5.12" ? { keysource: null } : {};
  return json({ key: key.key, id: key.id, ...source }, 201);
}

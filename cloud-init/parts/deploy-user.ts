import { partFile, shellPart } from "./part.ts";

/** The account that operators and the SSH fallback use; only the password's hash is here. */
export const deployUser = shellPart({
  name: "60-deploy-user.sh",
  owner: "muster",
  body: partFile("deploy-user.sh"),
  values: ({ deployUser: user }) =>
    user === undefined
      ? null
      : {
          USER_NAME: user.name,
          PASSWORD_HASH: user.passwordHash,
          AUTHORIZED_KEYS: user.sshAuthorizedKeys.join("\n"),
          USER_SUDO: user.sudo,
        },
});

import { partFile, shellPart } from "./part.ts";

/** The account for operators and for access by SSH without the agent. The part contains only the password's hash. */
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

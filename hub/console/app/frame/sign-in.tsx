import { Anchor, Button, Loader, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import type { HubError } from "../api/hub-error.ts";
import { begin, signIn, signOut } from "../api/session.ts";
import { Mark } from "./brand.tsx";
import classes from "./sign-in.module.css";

const Card = ({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode => (
  <main className={classes.place}>
    <div className={classes.card}>
      <div className={classes.brand}>
        <Mark /> Muster
      </div>
      <h1 className={classes.title}>{title}</h1>
      {children}
    </div>
  </main>
);

export const Starting = (): ReactNode => (
  <main className={classes.place}>
    <div role="status" className={classes.starting}>
      <Loader size="sm" /> Asking the hub who you are
    </div>
  </main>
);

/**
 * The path and query below `/console/` of the page to which the identity provider's sign-in returns the person. The console may be opened as
 * `/console`, without the last slash.
 */
const place = (): string =>
  `${location.pathname.replace(/^\//, "").replace(/^console$/, "console/")}${location.search}`;

export function SignIn({ why, provider }: { readonly why: string | null; readonly provider: boolean }): ReactNode {
  const [token, setToken] = useState("");
  const signing = useMutation({ mutationFn: signIn });
  useEffect(() => {
    document.title = "Sign in - Muster";
  }, []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const given = token.trim();
    setToken("");
    if (given !== "") signing.mutate(given);
  };
  return (
    <Card title="Sign in">
      <p role="status" className={classes.why}>
        {signing.isError ? "" : why}
      </p>
      {provider ? (
        <Button component="a" fullWidth size="sm" href={`/sign-in?${new URLSearchParams({ to: place() })}`} autoFocus>
          Sign in with your account
        </Button>
      ) : null}
      {provider ? <p className={classes.or}>or with a token</p> : null}
      <form onSubmit={submit}>
        <TextInput
          label="Token"
          type="password"
          size="sm"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          error={signing.isError ? signing.error.message : undefined}
          autoComplete="off"
          spellCheck={false}
          required
          withAsterisk={false}
          autoFocus={!provider}
        />
        <Button
          type="submit"
          fullWidth
          size="sm"
          mt="sm"
          variant={provider ? "default" : "filled"}
          loading={signing.isPending}
        >
          Log in
        </Button>
      </form>
      <p className={classes.hint}>
        The first token is in the file <code>admin-token</code> of the hub's state folder. All tabs of this browser
        share the session, and the console keeps no token.
      </p>
    </Card>
  );
}

/** Tells the person that the hub refuses their sign-in for everything, or that the hub does not answer at all. */
export function NoAccess({ error }: { readonly error: HubError }): ReactNode {
  return (
    <Card title={error.title}>
      <p role="alert">{error.detail}</p>
      <Button fullWidth size="sm" onClick={() => void begin()}>
        Try again
      </Button>
      {error.isAway ? null : (
        <Button fullWidth size="sm" mt="xs" variant="default" onClick={() => void signOut(false)}>
          Sign out
        </Button>
      )}
      <p className={classes.hint}>
        <Anchor href="/docs" inherit>
          The API's description
        </Anchor>{" "}
        needs no sign-in.
      </p>
    </Card>
  );
}

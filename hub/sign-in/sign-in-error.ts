/**
 * All reasons why a sign-in fails. `provider_away` means that the sign-in provider sent no usable answer. `refused` means that the provider, or the
 * person at the provider, refused the sign-in. `stale` means that the browser did not begin this sign-in, began it too long ago, or has completed it
 * already. `invalid` means that the sign-in provider's token is not acceptable.
 */
export type SignInFailure = "provider_away" | "refused" | "stale" | "invalid";

/** A failed sign-in. The message of a failed sign-in says what happened and what to do next, and holds no part of a token. */
export class SignInError extends Error {
  readonly failure: SignInFailure;
  constructor(failure: SignInFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "SignInError";
    this.failure = failure;
  }
}

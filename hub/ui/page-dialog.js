// The dialog of the operators' page that asks for a reason before an action, and shows the action's result.
// biome-ignore-all lint/correctness/noUnusedVariables: page.js uses them; the scripts are one
const say = (id, ...content) => $(id).replaceChildren(...content);
const quiet = () => {
  say("note");
  say("done");
};

/** Says what the hub has answered to an action that it has taken. */
function sayTaken(what, taken) {
  const { onboarding_id: onboarding, decommission_id: operation, warning } = taken;
  const { bootstrap_command: command, expires_at: expiresAt, token } = taken;
  say(
    "done",
    `${what}: the hub has taken it. `,
    ...(warning ? [`${warning} `] : []),
    ...(command
      ? [`Run this as root on that host by ${time(expiresAt)}; it is shown once: `, make("code", command)]
      : []),
    ...(token ? ["Copy the token now; it is shown once: ", make("code", token)] : []),
    ...(onboarding ? [link(`#/onboardings/${onboarding}`, "See how it goes")] : []),
    ...(operation ? [link(`#/decommissions/${operation}`, "See how it goes")] : []),
  );
}

/** Asks for the reason of an action, which the hub stores together with the operator's name. An approved request has its reason already. */
function askReason({ title: effect, ariaLabel: what, textContent: verb, className, dataset }) {
  const { path, body, secret, carries } = dataset;
  const plain = carries !== undefined || dataset.plain !== undefined;
  $("dialog-title").textContent = what;
  $("dialog-effect").textContent = effect.endsWith(".") ? effect : `${effect}.`;
  $("dialog-do").textContent = verb;
  $("dialog-do").className = className;
  $("reason").value = "";
  $("reason").required = !plain;
  $("reason-part").hidden = plain;
  $("dialog").returnValue = "";
  $("dialog").onclose = async () => {
    const reason = $("reason").value.trim();
    if ($("dialog").returnValue !== "do" || (!plain && reason === "")) return;
    quiet();
    try {
      const taken = carries
        ? await carryOut(path)
        : await ask(path, { ...JSON.parse(body), ...(plain ? {} : { reason }) }, { repeatable: secret === undefined });
      sayTaken(what, taken ?? {});
    } catch (error) {
      if (error.code === "approval_required") remember(error.context.approval_id, what);
      else say("note", `${what}: ${error.message}`);
    }
    await loop();
  };
  $("dialog").showModal();
}

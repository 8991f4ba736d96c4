// The dialog of the operators' page that asks for a reason before an action, and shows the action's result.
// biome-ignore-all lint/correctness/noUnusedVariables: page.js uses them; the scripts are one
const say = (id, ...content) => $(id).replaceChildren(...content);
const quiet = () => {
  say("note");
  say("done");
};

/** Asks for the reason of an action, which the hub stores together with the operator's name. */
function askReason({ title: effect, ariaLabel: what, textContent: verb, className, dataset: { path, body, secret } }) {
  $("dialog-title").textContent = what;
  $("dialog-effect").textContent = `${effect}.`;
  $("dialog-do").textContent = verb;
  $("dialog-do").className = className;
  $("reason").value = "";
  $("dialog").returnValue = "";
  $("dialog").onclose = async () => {
    const reason = $("reason").value.trim();
    if ($("dialog").returnValue !== "do" || reason === "") return;
    quiet();
    try {
      const taken = await ask(path, { ...JSON.parse(body), reason }, { repeatable: secret === undefined });
      const { decommission_id: operation, warning, bootstrap_command: command, expires_at: expiresAt } = taken;
      say(
        "done",
        `${what}: the hub has taken it. `,
        ...(warning ? [`${warning} `] : []),
        ...(command
          ? [`Run this as root on that host by ${time(expiresAt)}; it is shown once: `, make("code", command)]
          : []),
        ...(operation ? [link(`#/decommissions/${operation}`, "See how it goes")] : []),
      );
    } catch (error) {
      say("note", `${what}: ${error.message}`);
    }
    await loop();
  };
  $("dialog").showModal();
}

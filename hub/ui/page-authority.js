// The part of the operators' page for the hub's CA and task-signing key: the progress of a rotation of these keys, and the rotation's next step.
// biome-ignore-all lint/correctness/noUnusedVariables: the other parts use them; the scripts are one
const AUTHORITY = "/api/v1/admin/authority";
const KEYS = "the rotation of the hub's keys";

/**
 * Returns a button for each step of a key rotation that the hub would accept now. While some hosts do not have the hub's next keys, the hub refuses
 * to finish the rotation unless the operator forces it.
 */
const rotationButtons = ({ next, hosts, informed }) => {
  if (next === null)
    return [
      actionButton(
        AUTHORITY,
        "Create the next CA and order key, and announce them to hosts; nothing is signed with them yet",
        "begin",
        KEYS,
        { verb: "rotation", first: true },
      ),
    ];
  const path = `${AUTHORITY}/rotation`;
  const finish =
    informed < hosts
      ? actionButton(
          path,
          `Make the next keys valid although ${hosts - informed} of ${hosts} hosts do not know them; hosts that are off follow when they come back`,
          "force",
          KEYS,
          { verb: "finish", body: { force: true } },
        )
      : actionButton(
          path,
          "Make the next keys valid on every hub; the old ones sign nothing from then on",
          "finish",
          KEYS,
          {
            first: true,
          },
        );
  const abandon = actionButton(path, "Abort the rotation: hosts forget the next keys", "abandon", KEYS, {
    verb: "abort",
  });
  return [finish, abandon];
};

async function authority() {
  const one = await ask(AUTHORITY);
  const { generation, current, next, hosts, informed, missing } = one;
  const which = next === null ? "the keys in force" : `the next keys, of generation ${next.generation}`;
  const hostRow = (host) =>
    make("tr", [
      make("td", link(`#/nodes/${host.id}`, host.hostname)),
      make("td", tag(host.status)),
      make("td", time(host.last_seen_at)),
    ]);
  return [
    section(
      "The hub's keys",
      make("p", [
        tag(next === null ? "in force" : "rotation under way", next === null ? "good" : "busy"),
        ` ${informed} of ${hosts} hosts know ${which}`,
      ]),
      verbs(rotationButtons(one)),
    ),
    section("In force", facts({ generation, ...current })),
    ...(next === null ? [] : [section("Announced", facts(next))]),
    ...(missing.length === 0
      ? []
      : [section("Hosts that do not know them yet", table(["Host", "Status", "Last heard"], missing.map(hostRow)))]),
  ];
}

import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMay } from "../../api/session.ts";
import { profilesOf } from "../../forms/site-choices.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { DriftLink, NodesLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import { Breakers } from "./breakers.tsx";
import { Credentials } from "./credentials.tsx";
import { NewProfile } from "./new-profile.tsx";
import { ProbeNow } from "./probe.tsx";
import { Roce } from "./roce.tsx";
import { siteRoute } from "./route.ts";
import { type Profile, type Site, siteOf, statusOf } from "./site-questions.ts";

/** Shows one site: how MAAS answers, what is still missing, and all the settings that the hub needs there. */
export function Page(): ReactNode {
  const { id } = siteRoute.useParams();
  const query = useQuery(siteOf(id));
  return (
    <Answered query={query} what="the site">
      {(site) => <Body key={id} site={site} />}
    </Answered>
  );
}

function Body({ site }: { readonly site: Site }): ReactNode {
  const may = useMay();
  return (
    <>
      <PageHead
        title={site.name}
        beside={<StatusBadge status={site.status} />}
        below={<code>{site.api_base_url}</code>}
        actions={
          <>
            {may("operate_nodes") ? (
              <>
                <Button renderRoot={(props) => <Link to="/onboard" search={{ site_id: site.id }} {...props} />}>
                  Onboard hosts
                </Button>
                <Button
                  variant="default"
                  renderRoot={(props) => <Link to="/adopt" search={{ site_id: site.id }} {...props} />}
                >
                  Adopt hosts
                </Button>
              </>
            ) : null}
            {may("configure_sites") ? (
              <Button
                variant="default"
                renderRoot={(props) => <Link to="/sites/$id/edit" params={{ id: site.id }} {...props} />}
              >
                Change the site
              </Button>
            ) : null}
          </>
        }
      />
      <NextSteps site={site} />
      <ProbeNow site={site} />
      <Watched site={site} />
      <Breakers siteId={site.id} />
      <Credentials site={site} />
      <Profiles site={site} />
      <Roce site={site} />
      <Section title="Settings of the site">
        <Facts
          facts={[
            ["Region code", site.region_code],
            ["PXE interface of the rack controllers", <code key="pxe">{site.pxe_iface}</code>],
            ["PXE VLAN", site.pxe_vlan_vid === 0 ? "untagged" : String(site.pxe_vlan_vid)],
            ["PXE interface of the hosts", <code key="node">{site.node_pxe_iface}</code>],
            ["Deploy account", <code key="user">{site.deploy_user}</code>],
            ["Interface with the node's address", <code key="ssh">{site.deploy_ssh_iface}</code>],
            ["Upstream DNS servers", site.upstream_dns_servers.join(", ")],
            ["Automatic repair", site.auto_repair ? "on" : "off"],
            ["Repairs of a machine in 30 days", `${site.repair_attempt_limit} at most`],
            ["Added", <RelativeTime key="made" at={site.created_at} />],
            ["Changed", <RelativeTime key="changed" at={site.updated_at} />],
          ]}
        />
      </Section>
    </>
  );
}

/** Lists what a new site still needs before hosts can be onboarded, in the order in which a person should set it up. */
function NextSteps({ site }: { readonly site: Site }): ReactNode {
  const { data } = useQuery(profilesOf(site.id));
  const { maas_token: token, power, deploy_password: password } = site.credentials;
  const missing = [
    token ? null : "the API key of MAAS",
    power ? null : "the login of the BMCs",
    password ? null : "the deploy password",
    data === undefined || data.items.some(({ status }) => status === "active") ? null : "a profile",
  ].filter((one) => one !== null);
  if (missing.length === 0) return null;
  return (
    <Note tone="attention" title="The site is not ready for hosts yet">
      It lacks {missing.join(", ")}. Add them below, then probe the site, and onboard hosts.
    </Note>
  );
}

/** Shows how old the hub's knowledge of the site's MAAS is. */
function Watched({ site }: { readonly site: Site }): ReactNode {
  const query = useQuery(statusOf(site.id));
  return (
    <Section title="What the hub knows of MAAS">
      <Answered query={query} what="the state of the site">
        {(one) =>
          one === null ? (
            <Empty title="The hub has not looked at the site yet" kind="none" />
          ) : (
            <Facts
              facts={[
                [
                  "MAAS",
                  one.last_error_code === null ? (
                    <StatusBadge key="ok" status="ok">
                      answers
                    </StatusBadge>
                  ) : (
                    <StatusBadge key="bad" status="failed">
                      {words(one.last_error_code)}
                    </StatusBadge>
                  ),
                ],
                [
                  "Failed looks in a row",
                  one.consecutive_failures === 0 ? undefined : String(one.consecutive_failures),
                ],
                ["Last look", <RelativeTime key="look" at={one.last_look_at} />],
                ["Last whole sweep", <RelativeTime key="sweep" at={one.last_sweep_at} />],
                [
                  "Nodes as MAAS says",
                  <NodesLink key="ok" search={{ site_id: site.id }}>
                    {one.ok}
                  </NodesLink>,
                ],
                [
                  "Nodes that differ",
                  <DriftLink key="drift" search={{ site_id: site.id }}>
                    {one.drifted}
                  </DriftLink>,
                ],
                [
                  "Differences that a person knows",
                  <DriftLink key="known" search={{ site_id: site.id, known: "true" }}>
                    {one.acknowledged}
                  </DriftLink>,
                ],
                ["Not compared yet", String(one.unreconciled)],
                [
                  "Machines that MAAS cannot read",
                  one.unreadable_machines === 0 ? undefined : String(one.unreadable_machines),
                ],
              ]}
            />
          )
        }
      </Answered>
    </Section>
  );
}

const ProfileName = ({ profile: { id, site_id: siteId, name } }: { readonly profile: Profile }): ReactNode => {
  const may = useMay();
  if (!may("configure_sites")) return name;
  return (
    <Link
      to="/sites/$id/profiles/$profileId"
      params={{ id: siteId, profileId: id }}
      title={`Change the profile ${name}`}
    >
      {name}
    </Link>
  );
};

const PROFILES: readonly Column<Profile>[] = [
  { id: "name", head: "Profile", cell: (profile) => <ProfileName profile={profile} /> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "image", head: "Image", cell: ({ distro_series: image, architecture }) => `${image}, ${architecture}` },
  { id: "turnover", head: "Turnover", cell: ({ turnover_mode: mode }) => words(mode) },
  {
    id: "parallel",
    head: "At once",
    align: "end",
    wide: true,
    cell: ({ batch_max_parallel: all, deploy_max_parallel: deploys }) =>
      `${counted(all, "host")}, ${counted(deploys, "deploy")}`,
  },
  {
    id: "second",
    head: "Second person for",
    wide: true,
    cell: ({ second_person: second }) => (second.length === 0 ? "nothing" : second.map(words).join(", ")),
  },
  { id: "about", head: "Description", wide: true, cell: ({ description }) => description ?? "-" },
];

function Profiles({ site }: { readonly site: Site }): ReactNode {
  const query = useQuery(profilesOf(site.id));
  return (
    <Section title="Profiles" aside={<NewProfile site={site} />}>
      <Answered query={query} what="the profiles">
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="The site has no profile yet" kind="none">
              A profile says what is installed on hosts, which checks run, and how a host is cleaned after a tenant.
            </Empty>
          ) : (
            <DataTable label="The profiles" columns={PROFILES} rows={items} rowKey={({ id }) => id} />
          )
        }
      </Answered>
    </Section>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { Breakers, Certificates, Credentials, Drift } from "./faults.tsx";
import { FleetByPlace, FleetByStatus } from "./fleet.tsx";
import { History } from "./history.tsx";
import { type Overview, overview } from "./overview-question.ts";
import { Slow } from "./slow.tsx";
import { Waiting } from "./waiting.tsx";

/** Shows what an operator must know first: what waits for a person, what is slow, and the state of the fleet. */
export function Page(): ReactNode {
  const query = useQuery(overview);
  return (
    <>
      <PageHead title="Overview" />
      <Answered query={query} what="the overview">
        {(data) => <Body data={data} />}
      </Answered>
    </>
  );
}

function Body({ data }: { readonly data: Overview }): ReactNode {
  if (data.nodes.length === 0 && data.waiting.length === 0 && data.slow.count === 0)
    return (
      <Section title="Nodes">
        <Empty title="This hub has no nodes yet" kind="none">
          Begin with a site: a MAAS region with its token and a profile. <Link to="/sites/new">Add a site</Link>, then{" "}
          <Link to="/onboard">onboard hosts</Link>, or <Link to="/adopt">adopt machines</Link> that MAAS has deployed
          already. <a href="/docs">The API's page</a> lists the requests, and <code>muster --help</code> the commands.
        </Empty>
      </Section>
    );
  return (
    <>
      <FleetByStatus data={data} />
      <Breakers data={data} />
      <Waiting data={data} />
      <Slow data={data} />
      <Drift data={data} />
      <Certificates data={data} />
      <Credentials data={data} />
      <FleetByPlace data={data} />
      <History />
    </>
  );
}

import { Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { PageHead } from "../../parts/page-head.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { NodeHistory } from "./history.tsx";
import { MachineTab } from "./machine.tsx";
import classes from "./node.module.css";
import { type Node, nodeOf } from "./node-questions.ts";
import { RepairOfNode } from "./repair.tsx";
import { nodeRoute, TABS } from "./route.ts";
import { StateTab } from "./state.tsx";
import { UseTab } from "./use.tsx";
import { NodeVerbs } from "./verbs.tsx";
import { WorkTab } from "./work.tsx";

type TabName = (typeof TABS)[number];
const TITLES: Readonly<Record<TabName, string>> = {
  state: "State",
  machine: "Machine",
  work: "Work",
  use: "Allocations and records",
  history: "History",
};
const PANELS: Readonly<Record<TabName, (props: { readonly node: Node }) => ReactNode>> = {
  state: StateTab,
  machine: MachineTab,
  work: WorkTab,
  use: UseTab,
  history: NodeHistory,
};

/** Shows all that the hub knows about one node: what it is, its status, what it lacks, and its history. */
export function Page(): ReactNode {
  const { id } = nodeRoute.useParams();
  const query = useQuery(nodeOf(id));
  return (
    <Answered query={query} what="the node">
      {(node) => <Body node={node} />}
    </Answered>
  );
}

function Body({ node }: { readonly node: Node }): ReactNode {
  const { tab = "state" } = nodeRoute.useSearch();
  const navigate = useNavigate({ from: "/nodes/$id" });
  const Panel = PANELS[tab];
  return (
    <>
      <PageHead
        title={node.hostname}
        beside={
          <>
            <StatusBadge status={node.status} />
            <StatusBadge status={node.schedulable ? "ok" : "no"} tone={node.schedulable ? "good" : "over"}>
              {node.schedulable ? "schedulable" : "takes no new work"}
            </StatusBadge>
          </>
        }
      />
      <RepairOfNode node={node} />
      <NodeVerbs node={node} />
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(value) =>
          void navigate({ search: { tab: value === "state" ? undefined : (value as TabName) }, replace: true })
        }
      >
        <Tabs.List className={classes.tabs}>
          {TABS.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {TITLES[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={tab}>
          <Panel node={node} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

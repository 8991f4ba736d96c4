import { Button } from "@mantine/core";
import { type QueryKey, useIsFetching, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

/** Asks the hub again for what no event tells of. The key is the beginning of the keys of the questions. */
export function Refresh({ queryKey }: { readonly queryKey: QueryKey }): ReactNode {
  const client = useQueryClient();
  const busy = useIsFetching({ queryKey }) > 0;
  return (
    <Button variant="default" loading={busy} onClick={() => void client.refetchQueries({ queryKey, type: "active" })}>
      Refresh
    </Button>
  );
}

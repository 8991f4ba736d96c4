import { Button } from "@mantine/core";
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

/** Asks the hub again for what no event tells of. The key is the beginning of the keys of the questions. */
export function Refresh({ queryKey }: { readonly queryKey: QueryKey }): ReactNode {
  const client = useQueryClient();
  const asking = useMutation({ mutationFn: () => client.refetchQueries({ queryKey, type: "active" }) });
  return (
    <Button variant="default" loading={asking.isPending} onClick={() => asking.mutate()}>
      Refresh
    </Button>
  );
}

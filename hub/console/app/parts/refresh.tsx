import { Button } from "@mantine/core";
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

/**
 * A button that reloads data for whose changes the hub sends no event; only the data in view is reloaded at once. The data that is out of view is
 * loaded again when it comes into view. The button repeats all queries whose cache keys begin with `queryKey`.
 */
export function Refresh({ queryKey }: { readonly queryKey: QueryKey }): ReactNode {
  const client = useQueryClient();
  const asking = useMutation({ mutationFn: () => client.invalidateQueries({ queryKey }) });
  return (
    <Button variant="default" loading={asking.isPending} onClick={() => asking.mutate()}>
      Refresh
    </Button>
  );
}

import { Button } from "@mantine/core";
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

/**
 * Asks the hub again for what no event tells of, as far as it is in sight. The rest is asked again when it comes into sight. The key is the beginning of
 * the keys of the questions.
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

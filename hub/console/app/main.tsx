import "./look/styles.ts";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/query-client.ts";
import { Entrance } from "./frame/entrance.tsx";
import { cssVariables, theme } from "./look/theme.ts";

/**
 * The page's content security policy lets the browser use only style elements with the page's nonce. Mantine makes style elements, and so does the
 * separate package that locks scrolling behind dialogs; both get the page's nonce.
 */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
setNonce(nonce);

const place = document.getElementById("console");
if (place === null) throw new Error("the document of the console has no place for it");
createRoot(place).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queryClient}>
        <Entrance />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);

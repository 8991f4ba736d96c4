import { EVERYTHING, type Topic } from "./topics.ts";

/**
 * The console asks again about one object at most once in `GATHER_MS`, plus a random delay so that many consoles do not send their requests at the
 * same moment.
 */
const GATHER_MS = 1_000;
const JITTER_MS = 500;
/** The console reloads a list at most once in `LISTS_EVERY_MS`, because the operations of a large fleet change the lists all the time. */
const LISTS_EVERY_MS = 5_000;

const isOfList = (topic: Topic): boolean => topic !== EVERYTHING && !topic.includes("/");

/** Collects which kinds of data many events have made stale, and then refreshes the screen for all of them at once. */
export class Gathering {
  readonly #refresh: (changed: ReadonlySet<Topic>) => void;
  readonly #topics = new Set<Topic>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #listsAt = Number.NEGATIVE_INFINITY;

  constructor(refresh: (changed: ReadonlySet<Topic>) => void) {
    this.#refresh = refresh;
  }

  add(topics: readonly Topic[]): void {
    for (const topic of topics) this.#topics.add(topic);
    this.#wait();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(): void {
    if (this.#topics.size === 0 || this.#timer !== null) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#tell();
        this.#wait();
      },
      GATHER_MS + Math.random() * JITTER_MS,
    );
  }

  #tell(): void {
    const now = performance.now();
    const lists = this.#topics.has(EVERYTHING) || now - this.#listsAt >= LISTS_EVERY_MS;
    const told = [...this.#topics].filter((topic) => lists || !isOfList(topic));
    for (const topic of told) this.#topics.delete(topic);
    if (told.some((topic) => topic === EVERYTHING || isOfList(topic))) this.#listsAt = now;
    if (told.length > 0) this.#refresh(new Set(told));
  }
}

// Asks the source on behalf of one account: takes a request number, sends the question, tries again during an outage, and checks whose data
// the answer holds before anybody uses it.
import { contains, type IdRange, isSingle } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { Store } from '../../store/store.ts';
import type { Ticket } from '../../store/sweeps/sweeps.ts';
import { checkIdentity } from '../accounts/account-identity.ts';
import { type RetryOptions, retry } from '../retry.ts';
import { type Heard, requestPage } from './request-page.ts';

/** An answer with its question and the facts of its request. */
export interface ReceivedAnswer {
  readonly question: Question;
  readonly ticket: Ticket;
  readonly heard: Heard;
  readonly tookMs: number;
}

export interface Asker {
  /** The account, with what its answers have said about it. */
  readonly advertiser: KnownAdvertiser;
  send(question: Question): Promise<ReceivedAnswer>;
  /** Throws where the answer is of another account. Must be called before anything of an answer is stored. */
  identify(answer: ReceivedAnswer): Promise<void>;
}

/** More ids that fail are too many to believe: then the source is in trouble, and no further id is marked as unreadable. */
const mostFailedIds = 20;

export function createAsker(
  { store, source }: { readonly store: Pick<Store, 'advertisers' | 'sweeps'>; readonly source: Source },
  first: KnownAdvertiser,
  retryOptions: RetryOptions,
): Asker {
  let advertiser = first;
  /** Ranges whose questions have failed, and how many of them were single ids. */
  const failing: IdRange[] = [];
  let failedIds = 0;
  /** The last question that was served. If another one fails, this one shows whether the source serves anything. */
  let served: Question | null = null;
  const isHopeless = ({ covers }: Question) =>
    covers !== null &&
    !isSingle(covers) &&
    failing.some((range) => contains(range, covers.from) && contains(range, covers.to));
  return {
    get advertiser() {
      return advertiser;
    },
    send: (question) =>
      retry(retryOptions, async () => {
        const ticket = await store.sweeps.takeTicket();
        const sentAt = performance.now();
        const how = { isHopeless: isHopeless(question), control: served };
        const heard = await requestPage(source, question, retryOptions.signal, how);
        if (heard.page !== null) served = question;
        if (heard.answer.kind === 'unanswered' && question.covers !== null) {
          failing.push(question.covers);
          if (isSingle(question.covers)) failedIds++;
          if (failedIds > mostFailedIds)
            throw new Trouble('unreachable', `The source fails for one id after the other: ${heard.answer.why}`, {
              at: 'source',
            });
        }
        return { question, ticket, heard, tookMs: performance.now() - sentAt };
      }),
    async identify({ heard: { page } }) {
      if (page) advertiser = await retry(retryOptions, () => checkIdentity(store, advertiser, page));
    },
  };
}

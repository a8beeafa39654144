// All that can happen to a file: the states of its bytes and of its download, and every transition, with the function that makes it.
// Whatever refers to bytes (an attachment, an earlier version, a screen, the resume of a prefill) has no life of its own in the store of
// blobs: it follows its blob.

/** `writing`: announced, and perhaps put. `damaged`: the object is missing or wrong, or had no row. `deleting`: it is to be deleted. */
export const blobStates = ['writing', 'stored', 'damaged', 'infected', 'deleting'] as const;

/**
 * `queued`: waits until it is due. `claimed`: a run has it. `announced`: claimed, and its bytes are about to be put or were put. `suspect`:
 * its claim expired, so it is fetched alone.
 */
export const downloadStates = ['queued', 'claimed', 'announced', 'suspect'] as const;

export type BlobState = (typeof blobStates)[number];
export type DownloadState = (typeof downloadStates)[number];

/** A change of state. Null is no row. */
export interface Transition<State extends string> {
  readonly from: readonly (State | null)[];
  readonly to: State | null;
  readonly when: string;
  /** `file.ts function`, below src/store. */
  readonly by: readonly string[];
}

const living = ['writing', 'stored', 'damaged'] as const;

/**
 * The blob. Its object is put only in `writing` (or again in `stored` and `damaged`, where it is the same), and deleted only in `infected`
 * and `deleting`, under a token that one run holds. An announcement that finds one waits.
 */
export const blobLife: readonly Transition<BlobState>[] = [
  {
    from: [null],
    to: 'writing',
    when: 'a download or a prefill announces its bytes, before they are put',
    by: ['files/blobs.ts announceBlobs', 'prefill/prefills.ts announceResume'],
  },
  {
    from: ['deleting'],
    to: 'writing',
    when: 'a download or a prefill announces equal bytes, and no run holds the token of the delete',
    by: ['files/blobs.ts announceBlobs', 'prefill/prefills.ts announceResume'],
  },
  {
    from: [null, 'deleting', ...living],
    to: 'stored',
    when: 'the put has ended, and the attachment that refers to the bytes is written',
    by: ['files/complete-download.ts completeDownloads'],
  },
  {
    from: [...living],
    to: 'stored',
    when: 'the put has ended, and the prefill that refers to the bytes is offered to the careers site',
    by: ['prefill/prefills.ts offerPrefill'],
  },
  {
    from: ['stored'],
    to: 'damaged',
    when: 'verify, or a delete that came too late, finds the object missing or wrong',
    by: ['files/verify-blobs.ts markDamaged'],
  },
  {
    from: [null],
    to: 'damaged',
    when: 'verify finds an object that no row names, or bytes without a row are to be dropped and something refers to them',
    by: ['files/verify-blobs.ts adoptBlob', 'files/blobs.ts dropUnneeded'],
  },
  {
    from: [null, 'deleting', ...living],
    to: 'infected',
    when: 'the source flags a file with these bytes; from here on they are refused, and deleted',
    by: ['files/mark-infected.ts markFlagged', 'files/mark-infected.ts markFetched'],
  },
  {
    from: ['infected'],
    to: 'writing',
    when: 'no flag is left on these bytes; they are fetched again',
    by: ['files/mark-infected.ts markFlagged'],
  },
  {
    from: [null, ...living, 'deleting'],
    to: 'deleting',
    when: 'the person is erased, the prefill lapses, a download has lost its claim after its put, or the bytes were last announced or linked a day ago; and nothing else refers to them',
    by: ['files/blobs.ts dropUnneeded'],
  },
  {
    from: [null],
    to: 'deleting',
    when: 'verify finds a resume where earlier releases kept it',
    by: ['files/blobs.ts dropEarlierResume'],
  },
  {
    from: ['deleting'],
    to: null,
    when: 'the object is deleted, by the run that holds the token, or by a later one after it has expired; a day has passed since the bytes were announced, and no version of the object is kept',
    by: ['files/blobs.ts confirmDeletion'],
  },
];

/** The row of a download in the queue. It is claimed by a token; without it nothing can be announced, completed or postponed. */
export const downloadLife: readonly Transition<DownloadState>[] = [
  {
    from: [null],
    to: 'queued',
    when: 'a page shows a file, or a file is reopened: its bytes were lost, a flag was lifted, Hash was contradicted, a person asks for it',
    by: [
      'applications/commit-page.ts commitPage',
      'applications/update.ts applyChanges',
      'files/ready.ts reopenAttachments',
    ],
  },
  {
    from: ['claimed', 'announced', 'suspect'],
    to: 'queued',
    when: 'a file is reopened that waits already, or whose claim has expired: its attempts begin anew',
    by: ['files/ready.ts reopenAttachments'],
  },
  {
    from: ['queued', 'suspect'],
    to: 'claimed',
    when: 'it is due, and a run takes it; a suspect is taken alone',
    by: ['files/download-queue.ts claimDownloads'],
  },
  {
    from: ['queued', 'suspect'],
    to: 'announced',
    when: 'the same, where an earlier attempt had announced bytes: they may be in the store',
    by: ['files/download-queue.ts claimDownloads'],
  },
  {
    from: ['claimed', 'announced'],
    to: 'announced',
    when: 'its bytes are here, and will be put',
    by: ['files/blobs.ts announceBlobs'],
  },
  {
    from: ['claimed', 'announced'],
    to: 'queued',
    when: 'it failed (download-verdict.ts), the run ends, its bytes may have been deleted, or the Hash of its file has changed',
    by: [
      'files/download-queue.ts postponeDownload',
      'files/download-queue.ts releaseDownloads',
      'files/download-queue.ts takeBackAnnounced',
      'applications/update.ts applyChanges',
    ],
  },
  {
    from: ['claimed', 'announced'],
    to: 'suspect',
    when: 'the claim expired: its process has ended, or stands still; or a suspect in hand comes back without having failed',
    by: [
      'files/download-queue.ts claimDownloads',
      'files/download-queue.ts releaseDownloads',
      'files/download-queue.ts takeBackAnnounced',
      'applications/update.ts applyChanges',
    ],
  },
  {
    from: ['queued', 'claimed', 'announced', 'suspect'],
    to: null,
    when: 'it is completed: stored, infected, missing, rejected or given up; or its file was only to be compared, and Hash means nothing',
    by: ['files/complete-download.ts completeDownloads'],
  },
  {
    from: ['queued', 'claimed', 'announced', 'suspect'],
    to: null,
    when: 'the file was flagged or replaced, or its person was erased; its run finds the claim lost',
    by: ['applications/update.ts applyChanges', 'privacy/find-and-erase.ts erasePerson'],
  },
];

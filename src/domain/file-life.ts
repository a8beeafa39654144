// All that can happen to a file: the states of its bytes and of its download, and every transition, with the functions that make it (below
// src/store). Whatever refers to bytes (an attachment, an earlier version, a screen, the resume of a prefill) has no life of its own in the
// store of blobs: it follows its blob. A test holds both tables against all that happens. `none` is no row.

/** `writing`: announced, and perhaps put. `damaged`: the object is missing or wrong, or had no row. `deleting`: it is to be deleted. */
export const blobStates = ['writing', 'stored', 'damaged', 'infected', 'deleting'] as const;

/**
 * The blob. Its object is put only in `writing` (or again in `stored` and `damaged`, where it is the same), and deleted only in `infected`
 * and `deleting`, under a token that one run holds. An announcement that finds one waits.
 */
export const blobLife = `
none, deleting > writing: a download or a prefill announces its bytes before they are put; no run holds the token of a delete
  files/blobs.ts announceBlobs, prefill/prefills.ts announceResume
none, deleting, writing, stored, damaged > stored: the put has ended, and the attachment that refers to the bytes is written
  files/complete-download.ts completeDownloads
writing, stored, damaged > stored: the put has ended, and the prefill that refers to the bytes is offered to the careers site
  prefill/prefills.ts offerPrefill
stored > damaged: verify, or a delete that came too late, finds the object missing or wrong
  files/verify-blobs.ts markDamaged
none > damaged: verify finds an object that no row names, or bytes without a row are to be dropped and something refers to them
  files/verify-blobs.ts adoptBlob, files/blobs.ts dropUnneeded
none, deleting, writing, stored, damaged > infected: the source flags a file with these bytes; they are refused from here on, and deleted
  files/file-states.ts markFlagged, files/file-states.ts markFetched
infected > writing: no flag is left on these bytes; they are fetched again
  files/file-states.ts markFlagged
none, writing, stored, damaged, deleting > deleting: nothing refers to the bytes any more: the person is erased, the prefill lapses, a
  download has lost its claim after its put, or they were last announced or linked a day ago
  files/blobs.ts dropUnneeded
none > deleting: verify finds a resume where earlier releases kept it
  files/blobs.ts dropEarlierResume
deleting > none: the object is deleted, by the run that holds the token, or by a later one after it has expired; a day has passed since
  the bytes were announced, and no version of the object is kept
  files/blobs.ts confirmDeletion`;

/**
 * The row of a download in the queue. It is claimed by a token; without it nothing can be announced, completed or postponed. `queued`: waits
 * until it is due. `claimed`: a run has it. `announced`: claimed, and its bytes are about to be put or were put. `suspect`: its claim
 * expired, so it is fetched alone.
 */
export const downloadLife = `
none > queued: a page shows a file, or one is reopened: its bytes were lost, a flag was lifted, Hash was contradicted, a person asks for it
  applications/commit-page.ts commitPage, applications/update.ts applyChanges, files/file-states.ts reopenAttachments
claimed, announced, suspect > queued: a file is reopened that waits already, or whose claim has expired: its attempts begin anew
  files/file-states.ts reopenAttachments
queued, suspect > claimed: it is due, and a run takes it; a suspect is taken alone
  files/download-queue.ts claimDownloads
queued, suspect > announced: the same, where an earlier attempt had announced bytes: they may be in the store
  files/download-queue.ts claimDownloads
claimed, announced > announced: its bytes are here, and will be put
  files/blobs.ts announceBlobs
claimed, announced > queued: it failed (download-verdict.ts), its run ends, its bytes may have been deleted, or the Hash of its file changed
  files/download-queue.ts postponeDownload, files/download-queue.ts releaseDownloads
  files/download-queue.ts takeBackAnnounced, applications/update.ts applyChanges
claimed, announced > suspect: its process has ended, or stands still; or a suspect in hand comes back without having failed
  files/download-queue.ts claimDownloads, files/download-queue.ts releaseDownloads
  files/download-queue.ts takeBackAnnounced, applications/update.ts applyChanges
queued, claimed, announced, suspect > none: stored, infected, missing, rejected, given up; or only to be compared, and Hash means nothing
  files/complete-download.ts completeDownloads
queued, claimed, announced, suspect > none: the file was flagged or replaced, its id is another person's by now, or its person was erased; its run
  finds the claim lost
  applications/update.ts applyChanges, applications/update.ts withholdFiles, privacy/find-and-erase.ts erasePerson`;

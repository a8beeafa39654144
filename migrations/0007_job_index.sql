-- Counting by job reads this index alone: a tenth of the pages of the table, whose rows carry the source's whole object.
DROP INDEX "intake"."applications_job";--> statement-breakpoint
CREATE INDEX applications_job ON intake.applications (advertiser_id, job_reference, submitted_at) INCLUDE (application_id) WHERE erased_at IS NULL;

-- Counts only: this view names nobody. The row of a prefill outlives the person in it.
CREATE VIEW intake_analytics.prefill_funnel_daily AS
SELECT advertiser_id, (created_at AT TIME ZONE interval '10 hours')::date AS day,
  count(*) AS started,
  count(authorized_at) AS authorized,
  count(*) FILTER (WHERE outcome = 'denied') AS denied,
  count(prefilled_at) AS prefilled,
  count(resume_stored_at) AS resume_stored,
  count(redeemed_at) AS redeemed,
  count(*) FILTER (WHERE outcome = 'failed') AS failed,
  count(*) FILTER (WHERE outcome = 'expired') AS expired,
  count(*) FILTER (WHERE outcome = 'lapsed') AS lapsed
FROM intake.prefills
GROUP BY advertiser_id, day;
--> statement-breakpoint
COMMENT ON TABLE intake.prefills IS 'What candidates let a careers site fill in, one row per click on its button. The person leaves the row when nobody redeems it in time, or when erased; the row stays for the funnel.';
COMMENT ON COLUMN intake.prefills.advertiser_id IS 'The advertiser whose form is filled.';
COMMENT ON COLUMN intake.prefills.prefill_id IS 'Names the prefill.';
COMMENT ON COLUMN intake.prefills.outcome IS 'started, denied (by the candidate), expired (came back too late), failed, prefilled (profile here, not handed out), redeemed (handed out), lapsed (never redeemed, emptied) or erased.';
COMMENT ON COLUMN intake.prefills.reason IS 'Why it was denied, expired or failed, in our words.';
COMMENT ON COLUMN intake.prefills.form_url IS 'The application form, told to the source as applicationFormUrl.';
COMMENT ON COLUMN intake.prefills.return_url IS 'Where the browser went afterwards.';
COMMENT ON COLUMN intake.prefills.position_title IS 'Title of the position, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.position_uri IS 'Address of the job ad, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.country_code IS 'Two letters, as the careers site gave them.';
COMMENT ON COLUMN intake.prefills.postal_code IS 'Postal code, as the careers site gave it.';
COMMENT ON COLUMN intake.prefills.profile IS 'The whole profile as the source sent it. Its members are not described by the source.';
COMMENT ON COLUMN intake.prefills.profile_text IS 'The profile unaltered, where jsonb could not hold it.';
COMMENT ON COLUMN intake.prefills.notes IS 'What could not be kept or fetched as it came: a list of {field, reason}; null when all could.';
COMMENT ON COLUMN intake.prefills.first_name IS 'First name, where the profile has one.';
COMMENT ON COLUMN intake.prefills.last_name IS 'Last name, where the profile has one.';
COMMENT ON COLUMN intake.prefills.email IS 'E-mail address, where the profile has one.';
COMMENT ON COLUMN intake.prefills.phone IS 'Phone number, where the profile has one.';
COMMENT ON COLUMN intake.prefills.person_key IS 'Stands for the person by e-mail address, keyed; as in intake.applications where there is no jobseeker id.';
COMMENT ON COLUMN intake.prefills.resume_sha256 IS 'Fingerprint of the resume, in hex; its bytes lie in the blob store under prefills/advertiser_id/prefill_id once resume_stored_at is set.';
COMMENT ON COLUMN intake.prefills.resume_size_bytes IS 'Size of the resume.';
COMMENT ON COLUMN intake.prefills.resume_content_type IS 'Type of the resume, as its bytes show it.';
COMMENT ON COLUMN intake.prefills.resume_file_name IS 'Name of the resume file, without any path.';
COMMENT ON COLUMN intake.prefills.resume_reason IS 'Why there is no resume.';
COMMENT ON COLUMN intake.prefills.handle_hash IS 'Fingerprint of the one-time handle by which the profile is redeemed.';
COMMENT ON COLUMN intake.prefills.created_at IS 'When the button was clicked.';
COMMENT ON COLUMN intake.prefills.authorized_at IS 'When the candidate came back with a code.';
COMMENT ON COLUMN intake.prefills.prefilled_at IS 'When the profile was kept.';
COMMENT ON COLUMN intake.prefills.resume_stored_at IS 'When the bytes of the resume were in the blob store.';
COMMENT ON COLUMN intake.prefills.redeemed_at IS 'When the careers site fetched the profile.';
COMMENT ON COLUMN intake.prefills.ended_at IS 'When it came to its outcome.';
COMMENT ON TABLE intake.oauth_states IS 'Ways back from the source, each for one browser, for ten minutes and for one use. Spent ones are dropped after a day.';
COMMENT ON COLUMN intake.oauth_states.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake.oauth_states.state_hash IS 'Fingerprint of the state parameter.';
COMMENT ON COLUMN intake.oauth_states.binding_hash IS 'Fingerprint of the cookie of the browser that began.';
COMMENT ON COLUMN intake.oauth_states.prefill_id IS 'The prefill it leads to.';
COMMENT ON COLUMN intake.oauth_states.created_at IS 'When it was given out.';
COMMENT ON COLUMN intake.oauth_states.expires_at IS 'When it stops working.';
COMMENT ON COLUMN intake.oauth_states.used_at IS 'When it was used.';
COMMENT ON VIEW intake_analytics.prefill_funnel_daily IS 'From the button to the filled form, by the day of the click: where candidates are lost. Names nobody.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.advertiser_id IS 'The advertiser.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.day IS 'The day, at +10:00, on which the button was clicked.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.started IS 'Clicks on the button.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.authorized IS 'Candidates who came back with a code.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.denied IS 'Candidates who said no.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.prefilled IS 'Profiles that arrived.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.resume_stored IS 'Resumes that were stored.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.redeemed IS 'Profiles that the careers site fetched.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.failed IS 'Prefills that failed, at the source or with us.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.expired IS 'Prefills that came back too late, or never.';
COMMENT ON COLUMN intake_analytics.prefill_funnel_daily.lapsed IS 'Profiles that arrived and were never fetched.';

// Converts an application to the members that the API's description names, before it is JSON or XML.
// Choices about values apply here; choices about notation apply in the two renderers.

import type { Choices } from '../behaviour/choices.ts';
import type { SandboxApplication } from '../people/applications.ts';
import { toWireAttachment } from './attachment-wire.ts';
import { overlay } from './overlay.ts';
import type { Member, Wire } from './wire.ts';

/** Spec: Job application. */
export function toWire(application: SandboxApplication, choices: Choices, withInfo: boolean, host: string): Wire {
  const { plan } = application;
  if (plan?.element) return plan.element;
  const attachments = application.attachments.map((one) => toWireAttachment(one, application, choices, host));
  const members: Member[] = [
    ['ID', choices.idShape === 'text' ? { json: `"${application.id}"`, xml: `${application.id}` } : application.id],
    ['DateSubmitted', { moment: application.submittedAt }],
    ['Email', application.email],
    ['FirstName', application.firstName],
    ['LastName', application.lastName],
    ['Phone', application.phone],
    ['JobSeekerID', application.jobSeekerId],
  ];
  if (application.jobReference !== null) members.push(['JobReference', application.jobReference]);
  members.push(['Attachments', { list: attachments, of: 'Attachment' }]);
  const info = application.jobSeekingInfo;
  if (withInfo && info) {
    const facts: (readonly [string, string | number | boolean | null])[] = [
      ['JobTitle', info.jobTitle],
      ['CompanyName', info.companyName],
      ['TimeInRole', info.timeInRoleMonths],
      ['IsNewToWorkForce', info.isNewToWorkforce],
    ];
    members.push(['PrimaryJobSeekingInfo', { members: facts.flatMap((fact) => toSupplied(fact, choices)) }]);
  }
  if (choices.extraMembers) members.unshift(['__type', 'JobApplication:#Advertiser'], ['Channel', 'web']);
  return { members: plan ? overlay(members, plan.raw, plan.rawXml) : members };
}

function toSupplied([name, value]: readonly [string, string | number | boolean | null], choices: Choices): Member[] {
  if (value !== null) return [[name, value]];
  if (choices.unsupplied === 'absent') return [];
  return [[name, choices.unsupplied === 'null' ? null : '']];
}

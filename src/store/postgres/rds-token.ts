// Amazon RDS tokens in place of a password, signed with the role that the platform provides. The signer is an optional package, installed
// only where it is used.
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import type { Login } from './connection.ts';

/** Creates a token for one connection. It must be used to connect within 15 minutes; an open connection outlives it. */
export async function createRdsToken({ host, port, user }: Login): Promise<string> {
  const { Signer } = await import('@aws-sdk/rds-signer').catch((error: unknown) => {
    throw new SettingTrouble(
      'DATABASE_AUTH: rds-iam needs the package @aws-sdk/rds-signer, which is not installed.',
      error,
      'database',
    );
  });
  try {
    return await new Signer({ hostname: host, port, username: user }).getAuthToken();
  } catch (error) {
    // The signer sets no error code, so only the message identifies this error.
    if (error instanceof Error && error.message === 'Region is missing') {
      throw new SettingTrouble(
        'DATABASE_AUTH: rds-iam needs AWS_REGION, the region of the database.',
        error,
        'database',
      );
    }
    // The platform's credentials come from a metadata server that may be unavailable, so this is retried.
    const name = error instanceof Error ? error.name : 'unknown error';
    throw new Trouble(
      'local',
      `Cannot create a token for the database (${name}): check the AWS_* settings or the role.`,
      {
        at: 'database',
        cause: error,
      },
    );
  }
}

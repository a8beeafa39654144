// Tokens of Amazon RDS in place of a password, signed with the role of the platform. The signer is a package of its own, which only
// those install who use it.
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import type { Login } from './connection.ts';

/** A token for one connection; it holds for 15 minutes, and only to connect. */
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
    // The signer has no code for it.
    if (error instanceof Error && error.message === 'Region is missing') {
      throw new SettingTrouble(
        'DATABASE_AUTH: rds-iam needs AWS_REGION, the region of the database.',
        error,
        'database',
      );
    }
    // Credentials of a platform come from a server that may be away.
    const name = error instanceof Error ? error.name : 'unknown error';
    throw new Trouble(
      'local',
      `No token for the database could be made (${name}): check the AWS_* settings or the role.`,
      {
        at: 'database',
        cause: error,
      },
    );
  }
}

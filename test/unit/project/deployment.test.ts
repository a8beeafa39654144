// What is deployed names only what exists: settings, routes, images, users. Files are read as the tools that use them would.
import { readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { settings } from '../../../src/config/settings.ts';
import { loadConfig } from '../../../src/config.ts';

const known = [...settings].flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]));
const isSetting = (name: string) => known.includes(name) || name.startsWith('AWS_');

describe('compose.yaml', () => {
  const { services } = parse(readFileSync('compose.yaml', 'utf8')) as {
    services: Record<'worker' | 'prefill', Record<string, unknown>>;
  };

  it('gives the public port settings that its configuration accepts in production', () => {
    const environment = services.prefill.environment as Record<string, string>;
    expect(Object.keys(environment).filter((name) => !isSetting(name))).toEqual([]);
    const needs = ['database', 'blobs', 'prefill', 'privacy'] as const;
    expect(environment).not.toHaveProperty('SOURCE_CREDENTIAL');
    const config = loadConfig({ ...environment, NODE_ENV: 'production' }, { needs });
    expect(config.prefill).toMatchObject({ HOST: '0.0.0.0', PORT: 8080 });
    expect(services.prefill).toMatchObject({ ports: ['127.0.0.1:8080:8080'], read_only: true, cap_drop: ['ALL'] });
  });

  it('gives the worker settings that its configuration accepts in production', () => {
    const environment = services.worker.environment as Record<string, string>;
    expect(Object.keys(environment).filter((name) => !isSetting(name))).toEqual([]);
    const needs = ['database', 'source', 'sync', 'blobs', 'admin', 'privacy'] as const;
    const config = loadConfig({ ...environment, NODE_ENV: 'production' }, { needs });
    expect(config.admin).toMatchObject({ ADMIN_HOST: '0.0.0.0', ADMIN_PORT: 9090, ADMIN_USER: 'operator' });
  });
});

describe('deploy/kubernetes.yaml', () => {
  const objects = parseAllDocuments(readFileSync('deploy/kubernetes.yaml', 'utf8')).map((one) => one.toJS());
  const find = (kind: string) => objects.find((one) => one.kind === kind);
  const [container] = find('Deployment').spec.template.spec.containers;

  it('gives settings that exist, and every secret as a file of the secret', () => {
    const names = [...Object.keys(find('ConfigMap').data), ...container.env.map((one: { name: string }) => one.name)];
    expect(names.filter((name) => !isSetting(name))).toEqual([]);
    const files = container.env.map((one: { value: string }) => one.value.replace('/run/secrets/intake/', ''));
    expect(new Set(files)).toEqual(new Set(Object.keys(find('Secret').stringData)));
    for (const name of ['DATABASE_URL', 'SOURCE_CREDENTIAL', 'PRIVACY_KEY', 'ADMIN_PASSWORD']) {
      expect(names).toContain(`${name}_FILE`);
    }
  });

  it('reaches its database with TLS that is verified', () => {
    const needs = ['database', 'admin'] as const;
    const secret = find('Secret').stringData;
    const env = { ...find('ConfigMap').data, ADMIN_PASSWORD: secret['admin-password'], NODE_ENV: 'production' };
    expect(loadConfig({ ...env, DATABASE_URL: secret['database-url'] }, { needs }).warnings).toEqual([]);
  });

  it('is scraped by the operator of Prometheus, with the login of the admin port', () => {
    const monitors = parseAllDocuments(readFileSync('deploy/servicemonitor.yaml', 'utf8')).map((one) => one.toJS());
    const { spec } = monitors.find((one) => one.kind === 'ServiceMonitor');
    expect(find('Service').metadata.labels).toMatchObject(spec.selector.matchLabels);
    expect(find('Service').spec.ports.map((one: { name: string }) => one.name)).toContain(spec.endpoints[0].port);
    const login = monitors.find((one) => one.kind === 'Secret');
    const { username, password } = spec.endpoints[0].basicAuth;
    expect([username.name, password.name]).toEqual([login.metadata.name, login.metadata.name]);
    expect(login.stringData).toEqual({
      [username.key]: find('ConfigMap').data.ADMIN_USER,
      [password.key]: find('Secret').stringData['admin-password'],
    });
  });

  it('replaces one process after the other, since two releases run side by side', () => {
    const deployments = objects.filter(({ kind }) => kind === 'Deployment');
    expect(deployments).toHaveLength(2);
    for (const { spec } of deployments) {
      expect(spec.strategy).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
    }
  });

  it('lets the public process serve who is still sent to it, before it is told to end', () => {
    const { template } = objects.find(
      ({ kind, metadata }) => kind === 'Deployment' && /prefill/.test(metadata.name),
    ).spec;
    const [command, seconds] = template.spec.containers[0].lifecycle.preStop.exec.command;
    expect(command).toBe('sleep');
    // With the 15 s in which it finishes requests.
    expect(Number(seconds) + 15).toBeLessThan(template.spec.terminationGracePeriodSeconds);
  });

  it('runs the public port apart, with a secret and a login of its own and without an admin port', () => {
    const named = (kind: string) => objects.find((one) => one.kind === kind && one.metadata.name === 'intake-prefill');
    const { template } = named('Deployment').spec;
    const [prefill] = template.spec.containers;
    expect(prefill.command).toEqual(['node', 'src/cli/main.ts', 'prefill']);
    expect(prefill.ports).toEqual([{ name: 'public', containerPort: 8080 }]);
    expect(prefill.securityContext).toEqual(container.securityContext);
    expect(template.spec.volumes[0].secret.secretName).toBe(named('Secret').metadata.name);
    const files = prefill.env.map((one: { value: string }) => one.value.replace('/run/secrets/intake/', ''));
    expect(new Set(files)).toEqual(new Set(Object.keys(named('Secret').stringData)));
    const secret = named('Secret').stringData;
    expect(new URL(secret['database-url']).username).not.toBe(
      new URL(find('Secret').stringData['database-url']).username,
    );
    const env = {
      ...find('ConfigMap').data,
      ...named('ConfigMap').data,
      NODE_ENV: 'production',
      OAUTH_CLIENT_SECRET: secret['oauth-client-secret'],
      PREFILL_KEY: secret['prefill-key'],
      SESSION_SECRET: secret['session-secret'],
    };
    expect(Object.keys(secret)).not.toContain('source-credential');
    expect(loadConfig(env, { needs: ['prefill'] }).prefill).toMatchObject({ PORT: 8080 });
    expect(named('Service').spec.ports[0].targetPort).toBe('public');
  });
});

describe('the Dockerfile', () => {
  const text = readFileSync('Dockerfile', 'utf8');

  it('copies only what .dockerignore lets through', () => {
    const open = readFileSync('.dockerignore', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, files]) => files?.split(' ') ?? []);
    expect(copied.length).toBeGreaterThan(3);
    expect(copied.filter((file) => !open.some((path) => file === path || file.startsWith(`${path}/`)))).toEqual([]);
  });
});

describe('the workflows', () => {
  const load = (name: string) => parse(readFileSync(`.github/workflows/${name}.yml`, 'utf8'));

  it('name every action by its commit', () => {
    for (const name of ['ci', 'image']) {
      const text = readFileSync(`.github/workflows/${name}.yml`, 'utf8');
      expect(text.match(/uses: .+/g)?.filter((use) => !/@[0-9a-f]{40} # v\d/.test(use))).toEqual([]);
    }
  });

  it('run commands that the checkout has, and give the image arguments that it has', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    const jobs = ['ci', 'image'].flatMap((name) => Object.values<{ steps: { run?: string }[] }>(load(name).jobs));
    const lines = jobs.flatMap(({ steps }) => steps.flatMap(({ run }) => run?.trim().split('\n') ?? []));
    expect(lines.length).toBeGreaterThan(5);
    for (const line of lines) {
      const [command = '', script = ''] = line.split(' ');
      if (command.startsWith('.')) expect(statSync(command).mode & 0o111, line).not.toBe(0);
      else if (command === 'npm' && script !== 'ci') expect(scripts, line).toHaveProperty(script);
      else expect(command, line).toMatch(/^(?:npm|echo|test|base=.*|digest=.*)$/);
    }
    const dockerfile = readFileSync('Dockerfile', 'utf8');
    const build = load('image').jobs.image.steps.find(({ id }: { id?: string }) => id === 'build').with;
    const given: string[] = build['build-args'].match(/^\w+(?==)/gm);
    expect(given.filter((name) => !new RegExp(`^ARG ${name}=`, 'm').test(dockerfile))).toEqual([]);
  });
});

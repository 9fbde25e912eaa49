import { deflateRawSync, gzipSync } from 'node:zlib';

/** A tar.gz as releases have it: a folder, a read-me, the licence, the server. */
export function tarGz(folder: string, server: string): Buffer {
  const parts = [
    tarEntry(`${folder}/`, '', '5'),
    tarEntry(`${folder}/README.md`, 'nats-server', '0'),
    tarEntry(`${folder}/LICENSE`, 'the licence', '0'),
    tarEntry(`${folder}/nats-server`, server, '0'),
  ];
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]));
}

function tarEntry(name: string, content: string, type: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write('0000755\0', 100);
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

/** A zip as releases for Windows have it. */
export function zip(folder: string, server: string): Buffer {
  const files = [
    { name: `${folder}/README.md`, content: Buffer.from('nats-server') },
    { name: `${folder}/LICENSE`, content: Buffer.from('the licence') },
    { name: `${folder}/nats-server.exe`, content: Buffer.from(server) },
  ];
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content } of files) {
    const packed = deflateRawSync(content);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(8, 8);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(content.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    locals.push(local, Buffer.from(name), packed);
    directory.push(entry, Buffer.from(name));
    offset += 30 + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, ...directory, end]);
}

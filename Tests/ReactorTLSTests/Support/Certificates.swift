#if TLS
/// Certificates created by the openssl command for this process, signed by a test authority and by others.
struct Certificates {
    /// An authority, and the certificates of a server and of a client that it has signed.
    let authority: [UInt8]
    let server: TLSIdentity
    let client: TLSIdentity
    /// For another name than the server's, by that authority.
    let other: TLSIdentity
    let expired: TLSIdentity
    let selfSigned: TLSIdentity
    /// With `serverName` only as the common name; with names of all kinds but DNS; with DNS names that contain invalid
    /// bytes.
    let commonName, otherNames, brokenNames: TLSIdentity
    /// With a password.
    let encryptedKey: [UInt8]
    let serverChain: [UInt8]
    let serverKey: [UInt8]
    /// An authority that has signed none of these.
    let stranger: [UInt8]

    /// The names of the server's certificate.
    static let serverName = "localhost"

    static let shared: Certificates = {
        do { return try Certificates() } catch { fatalError("no certificates: \(error)") }
    }()

    private init() throws {
        let folder = CertificateFolder()
        try folder.run(
            """
            set -e
            key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
            root() { key "$1"; openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 2 -out "$1.pem"; }
            # leaf NAME SUBJECT NAMES: signed by the intermediate authority.
            leaf() {
                key "$1"
                openssl req -new -key "$1.key" -subj "/O=Reactor/CN=$2" -out "$1.csr"
                printf 'basicConstraints=CA:FALSE\\n%s\\n' "${3:+subjectAltName=$3}" > "$1.ext"
                openssl x509 -req -in "$1.csr" -CA middle.pem -CAkey middle.key -CAcreateserial -days 2 \
                    -extfile "$1.ext" -out "$1.leaf"
                cat "$1.leaf" middle.pem > "$1.pem"
            }
            root authority 'Test Authority'
            root stranger 'Another Authority'
            root selfSigned localhost
            key middle
            openssl req -new -key middle.key -subj '/CN=Test Intermediate' -out middle.csr
            printf 'basicConstraints=critical,CA:TRUE\\n' > middle.ext
            openssl x509 -req -in middle.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
                -extfile middle.ext -out middle.pem
            leaf server localhost DNS:localhost,DNS:*.example.test,IP:127.0.0.1
            leaf other other.test DNS:other.test
            leaf client 'a client' DNS:client.test
            leaf commonName localhost ''
            leaf otherNames localhost IP:127.0.0.1,IP:2001:db8::7,URI:spiffe://example.test/a,email:a@example.test
            # "localhost", a zero byte and ".evil.test"; a Kelvin sign and ".test"; ""; "ok.test".
            leaf brokenNames localhost \
                DER:302b82146c6f63616c686f7374002e6576696c2e746573748208e284aa2e74657374820082076f6b2e74657374
            # The command x509 of OpenSSL 3.6 refuses an end in the past.
            leaf expired localhost DNS:localhost,IP:127.0.0.1
            printf '%s\\n' '[ca]' default_ca=ca database=issued rand_serial=yes policy=names \
                '[names]' organizationName=supplied commonName=supplied > ca.conf
            touch issued
            openssl ca -batch -notext -config ca.conf -cert middle.pem -keyfile middle.key -md sha256 -outdir . \
                -in expired.csr -extfile expired.ext -startdate 20200101000000Z -enddate 20200102000000Z -out expired.leaf
            cat expired.leaf middle.pem > expired.pem
            openssl ec -in server.key -aes128 -passout pass:secret -out server.encrypted
            """)
        authority = try folder.read("authority.pem")
        stranger = try folder.read("stranger.pem")
        server = try folder.identity("server")
        client = try folder.identity("client")
        other = try folder.identity("other")
        expired = try folder.identity("expired")
        selfSigned = try folder.identity("selfSigned")
        commonName = try folder.identity("commonName")
        otherNames = try folder.identity("otherNames")
        brokenNames = try folder.identity("brokenNames")
        serverChain = try folder.read("server.pem")
        serverKey = try folder.read("server.key")
        encryptedKey = try folder.read("server.encrypted")
    }
}

/// A new folder that is removed with this object.
final class CertificateFolder: Sendable {
    private let folder = Folder()
    var path: String { folder.path }

    func run(_ script: String) throws {
        let output = try EventLoop.withLoop { _ in
            try hang(ChildProcess.run("sh", ["-c", script], workingDirectory: path, timeout: .seconds(120)))
        }
        guard output.status.isSuccess else {
            throw TLSError(.configuration, reason: String(decoding: output.standardError, as: UTF8.self))
        }
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        guard let file = fopen("\(path)/\(name)", "we") else { throw SystemError(.open, errno) }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    func read(_ name: String) throws -> [UInt8] { try hangAlone { readFile("\(self.path)/\(name)") } }

    func identity(_ name: String) throws -> TLSIdentity {
        try TLSIdentity(certificateChain: read("\(name).pem"), privateKey: read("\(name).key"))
    }

    private func hangAlone<T>(_ body: () -> Promise<T>) throws -> T { try EventLoop.withLoop { _ in try hang(body()) } }
}
#endif

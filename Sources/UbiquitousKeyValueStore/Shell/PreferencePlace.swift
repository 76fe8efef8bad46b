import Foundation
import RecordModel
import Wire

/// Where the copies of one app's preferences are: a folder for a container and environment, with a file a user.
package struct PreferencePlace: Hashable, Sendable {
    /// The folder, which need not be there.
    package let folder: String

    /// Where this program's preferences were while it had no configuration, if that is known.
    package var unconfiguredFolder: String?

    package init(folder: String) { self.folder = folder }

    /// The place of a container's preferences under the user's data folder.
    /// - Parameter variables: the process's environment: `ZONEKEEPER_DATA_HOME`, else `XDG_DATA_HOME/zonekeeper`, else
    ///   `~/.local/share/zonekeeper`.
    package init(container: String, environment: String, variables: [String: String]) {
        let home = variables["HOME"] ?? NSHomeDirectory()
        let base: String
        if let own = variables["ZONEKEEPER_DATA_HOME"], !own.isEmpty {
            base = own
        } else if let data = variables["XDG_DATA_HOME"], data.hasPrefix("/") {
            base = data + "/zonekeeper"
        } else {
            base = home + "/.local/share/zonekeeper"
        }
        folder = "\(base)/preferences/\(Self.fileName(container))/\(Self.fileName(environment))"
    }

    /// The file of a user's copy; nil is what nobody's is.
    func path(of account: String?) -> String {
        // No user's name encodes to one with a dash and nothing before it.
        account.map { "\(folder)/\(Self.fileName($0)).json" } ?? "\(folder)/-nobody.json"
    }

    /// What nobody's values may be in: the first user to sign in gets them.
    var nobodysPaths: [String] {
        [path(of: nil)] + (unconfiguredFolder.map { [PreferencePlace(folder: $0).path(of: nil)] } ?? [])
    }

    /// Which user a session was when the server was last asked.
    func rememberedAccount(of session: String) -> String? {
        guard let bytes = FileManager.default.contents(atPath: sessionPath(session)) else { return nil }
        return (try? JSONParser.parse(Array(bytes)))?["account"]?.string
    }

    /// Keeps what the server said, for the next time that it cannot be asked. Where that fails, the next start asks first.
    func remember(_ account: String, of session: String) {
        guard rememberedAccount(of: session) != account else { return }
        let text = JSONValue.object([JSONValue.Member("account", .string(account))]).serialized()
        let path = sessionPath(session)
        try? Data(text).write(to: URL(filePath: path), options: .atomic)
        try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func sessionPath(_ session: String) -> String {
        "\(folder)/-session-\(String(fnv1a(Array(session.utf8)), radix: 16)).json"
    }

    /// Letters, digits, `.` and `_` as they are, the first dot and all else as `%` and two digits.
    private static func fileName(_ name: String) -> String {
        var text = ""
        for byte in name.utf8.prefix(100) {
            let scalar = Unicode.Scalar(byte)
            let isPlain = scalar.properties.isAlphabetic && byte < 0x80 || (0x30...0x39).contains(byte) || byte == 0x5F
            if isPlain || byte == 0x2E && !text.isEmpty {
                text.unicodeScalars.append(scalar)
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        // Longer names are told apart by their checksum.
        return name.utf8.count > 100 ? text + "%" + String(fnv1a(Array(name.utf8)), radix: 16) : text
    }
}

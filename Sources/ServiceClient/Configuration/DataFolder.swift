import Foundation
import Wire

/// Where programs keep what belongs to a user of a container: preferences, long-lived operations.
package enum DataFolder {
    /// The folder of all of it, which need not exist.
    /// - Parameter variables: the process's environment: `ZONEKEEPER_DATA_HOME`, else `XDG_DATA_HOME/zonekeeper`, else
    ///   `~/.local/share/zonekeeper`.
    package static func path(_ variables: [String: String]) -> String {
        if let own = variables["ZONEKEEPER_DATA_HOME"], !own.isEmpty { return own }
        if let data = variables["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/zonekeeper" }
        return (variables["HOME"] ?? NSHomeDirectory()) + "/.local/share/zonekeeper"
    }

    /// A name as a file or folder bears it: letters, digits, `.` and `_` as they are, the first dot and all else as `%`
    /// and two digits.
    package static func fileName(_ name: String) -> String {
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
        // Long names differ by their checksum.
        return name.utf8.count > 100 ? text + "%" + String(fnv1a(Array(name.utf8)), radix: 16) : text
    }
}

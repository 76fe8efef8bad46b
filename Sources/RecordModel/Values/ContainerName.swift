/// The rule for names of containers. They are part of URLs, keys and hashes, so they are plain ASCII.
package enum ContainerName {
    /// - Throws: `BAD_REQUEST` where the text cannot be a container's name.
    package static func check(_ name: String) throws(ServiceError) {
        guard !name.isEmpty, name.utf8.count <= Limits.nameLengthMax, name.utf8.allSatisfy(isAllowed) else {
            throw ServiceError(
                .badRequest,
                "the container's name '\(name.prefix(60))' is not possible: 1 to \(Limits.nameLengthMax) ASCII letters, "
                    + "digits, dots, hyphens and underscores are expected, such as iCloud.com.example.app")
        }
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

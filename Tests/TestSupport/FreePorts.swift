import Foundation
import Synchronization

/// Ports that nobody listened on a moment ago.
package enum FreePorts {
    /// Below those that Linux gives to outgoing connections: one of these could take the port of a node that is stopped
    /// for a while.
    private static let first = 12_000
    private static let count = 20_000
    /// Where this process looks next; others begin elsewhere.
    private static let next = Atomic(Int(getpid()) * 61 % count)

    /// Different ports on loopback.
    package static func take(_ wanted: Int) throws -> [Int] {
        var ports: [Int] = []
        for _ in 0..<count where ports.count < wanted {
            let port = first + next.add(1, ordering: .relaxed).oldValue % count
            if try isFree(port) { ports.append(port) }
        }
        try require(ports.count == wanted, "no free ports")
        return ports
    }

    private static func isFree(_ port: Int) throws -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try require(descriptor >= 0, "no socket: \(errno)")
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

package import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Whether a certificate is of use at the moment.
package enum CertificateValidity {
    /// What is wrong with the time for which a certificate was issued; nil if it holds now.
    package static func problem(of certificate: NIOSSLCertificate) -> String? {
        problem(from: certificate.notValidBefore, to: certificate.notValidAfter, now: time(nil))
    }

    /// - Parameters: seconds since 1970.
    static func problem(from: time_t, to end: time_t, now: time_t) -> String? {
        if end < now { return "it expired \((now - end) / 60) minutes ago" }
        if from > now { return "it is not valid for another \((from - now) / 60 + 1) minutes" }
        return nil
    }
}

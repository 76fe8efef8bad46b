import Foundation

/// How large CloudKit's transactions are, as the Record Layer paper of 2019 has it: 8.5 records in the mean, and bytes with a
/// median of 7 KB and a 99th percentile of 36 KB.
///
/// The paper gives these three figures and no distribution. Ours: 1 to 16 records, each as likely, and log-normal bytes.
enum TransactionSizes {
    static let recordsMax = 16
    static let medianBytes = 7_000.0
    static let p99Bytes = 36_000.0
    /// No more than this in one request, so that the tail stays inside what a request may hold.
    private static let bytesMax = 200_000.0

    static func records(_ random: inout LoadRandom) -> Int { 1 + random.below(recordsMax) }

    static func bytes(_ random: inout LoadRandom) -> Int {
        // The 99th percentile of the normal distribution is at 2.3263 standard deviations.
        let deviation = log(p99Bytes / medianBytes) / 2.3263
        return Int(min(bytesMax, medianBytes * exp(deviation * normal(&random))))
    }

    /// A draw from the normal distribution (Box and Muller 1958).
    private static func normal(_ random: inout LoadRandom) -> Double {
        let radius = (-2 * log(1 - random.unit())).squareRoot()
        return radius * cos(2 * .pi * random.unit())
    }
}

export const wrongDeliveries: string[];
export function checkDelivery(headers: Readonly<Record<string, string | undefined>>, sent: string): void;
export function checkSentDeliveries(): () => void;

export const wrongAnswers: string[];
